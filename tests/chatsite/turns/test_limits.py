"""Limits per user: what is counted, what is refused, and that it holds when several
processes count at once.
"""

import threading
import uuid
from datetime import timedelta

import pytest
from channels.db import database_sync_to_async
from django.db import connection, transaction
from django.db.models import F
from django.urls import reverse
from django.utils import timezone
from langchain_core.messages import AIMessage

from chatsite.live import refusals, socket_client
from chatsite.protocol import events
from chatsite.protocol.errors import CommandError
from chatsite.turns import commands, lifecycle, limits
from chatsite.turns.models import Allowance, Turn
from memory import context, transcript
from memory.compaction import compactor
from memory.models import Conversation, ModelCall

from ..scenes import signed_in, talk_in_turns

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def no_refusals():
    refusals._refused.clear()
    yield
    refusals._refused.clear()


@pytest.fixture
def sender(alice, conversation):
    client = signed_in(alice)
    key = client.cookies["sessionid"].value
    return socket_client.SocketClient(
        alice.pk, key, str(conversation.uuid), conversation.pk
    )


def send(sender, text="Hello", client_id=None):
    return sender.perform_command(events.Send(client_id or uuid.uuid4().hex, text))


def sent_until_refused(sender, most=50):
    """Return how many messages were accepted, and the refusal of the next one."""
    for count in range(most):
        try:
            send(sender)
        except CommandError as error:
            return count, error
    raise AssertionError("never refused")


class TestPace:
    @pytest.fixture(autouse=True)
    def limit(self, settings):
        settings.MESSAGES_PER_MINUTE = 2

    def test_burst_is_accepted_and_then_the_wait_is_named(self, sender):
        count, error = sent_until_refused(sender)
        assert count == 10  # what five minutes allow
        assert error.code == "rate_limited"
        assert 0 < error.retry_after <= 30
        assert error.detail.endswith(".")

    def test_refused_message_leaves_no_trace(self, sender, conversation):
        sent_until_refused(sender)
        before = conversation.messages.count(), Turn.objects.count()
        refusals._refused.clear()
        with pytest.raises(CommandError):
            send(sender)
        assert (conversation.messages.count(), Turn.objects.count()) == before

    def test_a_message_that_is_known_is_never_refused_or_counted(self, sender):
        first = send(sender, client_id="first").answers
        sent_until_refused(sender)
        due = Allowance.objects.get().next_message_at
        for _ in range(5):
            assert send(sender, client_id="first").answers == first
        assert Allowance.objects.get().next_message_at == due

    def test_the_refusal_names_the_message(self, sender):
        sent_until_refused(sender)
        with pytest.raises(CommandError) as caught:
            send(sender, client_id="mine")
        assert caught.value.client_id == "mine"
        assert caught.value.retry_after

    def test_time_gives_room_again(self, sender):
        sent_until_refused(sender)
        refusals._refused.clear()
        Allowance.objects.update(
            next_message_at=F("next_message_at") - timedelta(seconds=31)
        )
        send(sender)
        with pytest.raises(CommandError, match="messages a minute"):
            send(sender)

    def test_a_clock_set_back_locks_no_user_out(self, sender, alice):
        ahead = timezone.now() + timedelta(days=1)
        Allowance.objects.filter(user=alice).update(next_message_at=ahead)
        _, error = sent_until_refused(sender)
        assert error.retry_after <= 31

    def test_other_users_are_not_affected(self, sender, bob):
        sent_until_refused(sender)
        limits.admit_turn(bob.pk)
        assert Allowance.objects.get(user=bob).next_message_at

    def test_a_flood_that_goes_on_costs_no_transaction(
        self, sender, django_assert_num_queries
    ):
        sent_until_refused(sender)
        # The conversation with its owner and session, and whether the message is known.
        with django_assert_num_queries(2), pytest.raises(CommandError):
            send(sender)

    def test_a_retry_counts_too(self, sender, conversation):
        sent_until_refused(sender)
        refusals._refused.clear()
        for turn in lifecycle.unfinished(conversation.pk):
            commands.stop_turn(conversation, turn.pk)
        turn = conversation.turns.latest("pk")
        with pytest.raises(CommandError, match="messages a minute"):
            sender.perform_command(events.Retry(turn.pk))
        turn.refresh_from_db()
        assert turn.state == Turn.State.STOPPED

    def test_zero_is_no_limit(self, sender, settings):
        settings.MESSAGES_PER_MINUTE = 0
        before = Turn.objects.count()
        for _ in range(12):
            send(sender)
        assert Turn.objects.count() == before + 12


class TestBudget:
    @pytest.fixture(autouse=True)
    def limit(self, settings):
        settings.TOKENS_PER_DAY = 100

    def test_tokens_are_counted_as_reported(self, alice, conversation):
        # Two replies of 40 + 7 tokens, as reported.
        assert Allowance.objects.get(user=alice).tokens_used == 2 * 47

    def test_unreported_tokens_are_estimated(self, alice, conversation):
        sent = commands.submit_message(conversation, text="More", client_id="m")
        built = context.build_request_context(
            conversation, newest=sent.message, model="demo"
        )
        claim = lifecycle.begin(lifecycle.claim(conversation.pk), built, "demo")
        lifecycle.finish(claim, lifecycle.TurnResult(Turn.State.STOPPED, "12345678"))
        used = Allowance.objects.get(user=alice).tokens_used
        assert used == 2 * 47 + built.tokens + 2

    @pytest.mark.parametrize(
        ("read", "written"), [(None, 7), (0, 7), (40, None), (40, 0), (None, None)]
    )
    def test_half_a_report_is_completed(self, alice, conversation, read, written):
        sent = commands.submit_message(conversation, text="More", client_id="m")
        built = context.build_request_context(
            conversation, newest=sent.message, model="demo"
        )
        claim = lifecycle.begin(lifecycle.claim(conversation.pk), built, "demo")
        result = lifecycle.TurnResult(
            Turn.State.DONE, "12345678", tokens_input=read, tokens_output=written
        )
        lifecycle.finish(claim, result)
        used = Allowance.objects.get(user=alice).tokens_used
        assert used == 2 * 47 + (read or built.tokens) + (written or 2)

    def test_a_request_that_failed_at_once_is_free(self, alice, conversation):
        sent = commands.submit_message(conversation, text="More", client_id="m")
        built = context.build_request_context(
            conversation, newest=sent.message, model="demo"
        )
        claim = lifecycle.begin(lifecycle.claim(conversation.pk), built, "demo")
        failed = lifecycle.TurnResult(Turn.State.FAILED, "", error="unavailable")
        lifecycle.give_up(claim, failed)
        lifecycle.give_up(claim, failed)
        lifecycle.finish(claim, failed)
        assert Allowance.objects.get(user=alice).tokens_used == 2 * 47

    def test_a_request_is_billed_once_even_if_asked_twice(self, alice, conversation):
        sent = commands.submit_message(conversation, text="More", client_id="m")
        built = context.build_request_context(
            conversation, newest=sent.message, model="demo"
        )
        claim = lifecycle.begin(lifecycle.claim(conversation.pk), built, "demo")
        late = lifecycle.TurnResult(
            "failed", "", error="x", tokens_input=5, tokens_output=1
        )
        lifecycle.give_up(claim, late)
        lifecycle.give_up(claim, late)
        assert Allowance.objects.get(user=alice).tokens_used == 2 * 47 + 6

    def test_used_up_it_says_until_when(self, sender, conversation):
        talk_in_turns(conversation, "One more")
        with pytest.raises(CommandError) as caught:
            send(sender)
        assert caught.value.code == "quota"
        assert 0 < caught.value.retry_after <= 86_401
        assert "100 tokens" in caught.value.detail

    def test_deleting_gives_nothing_back(self, sender, alice, conversation):
        talk_in_turns(conversation, "One more")
        conversation.delete()
        sender.uuid = str(transcript.create_conversation(alice).uuid)
        with pytest.raises(CommandError, match="used up"):
            send(sender)

    def test_next_day_begins_with_a_full_budget(self, sender, conversation):
        talk_in_turns(conversation, "One more")
        Allowance.objects.update(day=F("day") - timedelta(days=1))
        send(sender)
        talk_in_turns(conversation)
        limits.charge_call(ModelCall.objects.filter(tokens_output=7).first())
        assert Allowance.objects.get().tokens_used == 47

    def test_an_own_budget_wins(self, sender, conversation):
        talk_in_turns(conversation, "One more")
        Allowance.objects.update(tokens_per_day=200)
        send(sender)
        Allowance.objects.update(tokens_per_day=50)
        with pytest.raises(CommandError, match="50 tokens"):
            send(sender)
        refusals._refused.clear()
        Allowance.objects.update(tokens_per_day=0)
        send(sender)


@pytest.mark.django_db(transaction=True)
async def test_summaries_are_counted_with_their_request(alice):
    async def invoke(messages, **options):
        usage = {"input_tokens": 30, "output_tokens": 5, "total_tokens": 35}
        return AIMessage("They said many things. " * 3, usage_metadata=usage)

    def prepare():
        made = transcript.create_conversation(alice, preset="langgraph")
        talk_in_turns(made, *"abcdef")
        return made, Allowance.objects.get(user=alice).tokens_used

    def check():
        calls = ModelCall.objects.filter(purpose="summary").count()
        assert calls > 0
        assert Allowance.objects.get(user=alice).tokens_used == before + 35 * calls

    conversation, before = await database_sync_to_async(prepare)()
    summariser = compactor.Summariser("demo", invoke, charge=limits.charge_call)
    await compactor.compact_conversation(conversation.pk, summariser)
    await database_sync_to_async(check)()


class TestQueue:
    def test_full_queue_refuses_a_message(self, sender, settings, conversation):
        settings.QUEUED_PER_USER = 3
        count, error = sent_until_refused(sender)
        assert (count, error.code) == (3, "queue_full")
        assert error.retry_after > 0
        refusals._refused.clear()
        commands.stop_turn(
            conversation, lifecycle.unfinished(conversation.pk).last().pk
        )
        send(sender)


class TestTurnsAtOnce:
    @pytest.fixture(autouse=True)
    def limit(self, settings):
        settings.TURNS_PER_USER = 2

    @pytest.fixture
    def waiting(self, alice):
        made = [transcript.create_conversation(alice) for _ in range(4)]
        for number, each in enumerate(made):
            commands.submit_message(each, text="Go", client_id=f"c{number}")
        return made

    def test_limit_of_running_turns_holds(self, waiting):
        claims = [lifecycle.claim(each.pk) for each in waiting]
        assert [claim is not None for claim in claims] == [True, True, False, False]

    def test_the_next_one_goes_on_when_one_ends(self, waiting):
        claim, *_ = [lifecycle.claim(each.pk) for each in waiting]
        assert limits.next_waiting(waiting[0].pk) == []
        lifecycle.finish(claim, lifecycle.TurnResult(Turn.State.DONE, "Done"))
        assert limits.next_waiting(waiting[0].pk) == [waiting[2].pk]
        assert lifecycle.claim(waiting[2].pk)

    def test_conversation_that_waited_longer_goes_first(self, waiting):
        claim, *_ = [lifecycle.claim(each.pk) for each in waiting]
        commands.submit_message(waiting[0], text="And?", client_id="again")
        lifecycle.finish(claim, lifecycle.TurnResult(Turn.State.DONE, "Done"))
        assert lifecycle.claim(waiting[0].pk) is None
        assert lifecycle.claim(waiting[3].pk) is None
        assert lifecycle.claim(waiting[2].pk)

    def test_a_dead_process_takes_no_place(self, waiting):
        for each in waiting:
            lifecycle.claim(each.pk)
        past = timezone.now() - timedelta(minutes=1)
        Turn.objects.update(lease_until=past)
        assert lifecycle.claim(waiting[0].pk).attempt == 2
        assert lifecycle.claim(waiting[1].pk).attempt == 2
        assert lifecycle.claim(waiting[2].pk) is None

    def test_the_sweep_leaves_those_alone_that_have_to_wait(self, waiting, bob):
        theirs = transcript.create_conversation(bob)
        commands.submit_message(theirs, text="Hi", client_id="b")
        for each in waiting:
            lifecycle.claim(each.pk)
        assert lifecycle.due() == [theirs.pk]

    def test_other_users_have_their_own_places(self, waiting, bob):
        for each in waiting:
            lifecycle.claim(each.pk)
        theirs = transcript.create_conversation(bob)
        commands.submit_message(theirs, text="Hi", client_id="b")
        assert lifecycle.claim(theirs.pk)


class TestConversations:
    def test_conversations_beyond_the_pace_are_refused_with_the_form_kept(
        self, client, settings
    ):
        settings.CONVERSATIONS_PER_MINUTE = 1
        url = reverse("conversation-create")
        made = [client.post(url, {"title": "T"}).status_code for _ in range(5)]
        assert made == [302] * 5
        refused = client.post(url, {"system_prompt": "The sixth"})
        assert refused.status_code == 429
        assert 0 < int(refused["Retry-After"]) <= 60
        assert "conversations a minute" in refused.content.decode()
        assert ">\nThe sixth</textarea>" in refused.content.decode()
        assert not Conversation.objects.filter(system_prompt="The sixth").exists()

    def test_the_scripted_conversation_counts_too(self, client, settings):
        settings.CONVERSATIONS_PER_MINUTE = 1
        url = reverse("conversation-demo")
        codes = [client.post(url).status_code for _ in range(6)]
        assert codes == [302] * 5 + [429]


@pytest.mark.django_db(transaction=True)
def test_the_pace_holds_when_many_count_at_once(alice, settings):
    settings.MESSAGES_PER_MINUTE = 2
    taken = []

    def work():
        for _ in range(5):
            try:
                with transaction.atomic():
                    limits.admit_turn(alice.pk)
                taken.append(1)
            except CommandError:
                pass
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == 10
