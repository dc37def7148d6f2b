"""The rate limit of requests beside replies: quota, pace and places hold everywhere."""

import asyncio
import re
import threading
from datetime import timedelta
from pathlib import Path

import pytest
from asgiref.sync import async_to_sync
from channels.db import database_sync_to_async
from django.conf import settings as site_settings
from django.db.models.functions import Now
from django.utils import timezone

from chatsite.jobs import activity
from chatsite.live import socket_client
from chatsite.protocol import events
from chatsite.protocol.errors import CommandError
from chatsite.turns import (
    commands,
    lifecycle,
    limits,
    runner,
    spending,
    titles,
)
from chatsite.turns.models import Allowance, Job, Turn
from memory import actions, transcript, versions
from memory.compaction import lease
from memory.engine.exceptions import PolicyError
from memory.engine.policy import CHUNK_TOKENS, Policy
from memory.models import Conversation, ModelCall
from tests.fakes import upstream as fake
from tests.memory.scenes import summarise

from ..scenes import HTMX, page_of, talk_in_turns, url

pytestmark = pytest.mark.django_db(transaction=True)
SENTENCE = "You have used up the 100 tokens for today. You get new ones in "


@pytest.fixture
def used_up(settings, alice, conversation, upstream):
    """Alice has no tokens left today; whatever would be sent reaches the upstream."""
    settings.TOKENS_PER_DAY = 100
    settings.SUMMARY_MODEL = "ok"
    values = {"day": timezone.localdate(), "tokens_used": 1_000_000}
    Allowance.objects.update_or_create(user=alice, defaults=values)
    return upstream


def recompaction(conversation):
    """Run the part of a sweep that concerns a conversation that is due."""
    Conversation.objects.filter(pk=conversation.pk).update(
        policy={"preset": "langgraph"}, compaction_due_at=Now()
    )
    talk = Conversation.objects.get(pk=conversation.pk)
    for n in range(3):
        seq = transcript.append_user_message(
            talk, text=f"Text {n}", client_id=f"more-{n}"
        )[0].seq
        transcript.append_reply(talk, seq=seq + 1, text="Yes.")
    async_to_sync(runner._compact_if_due)(conversation.pk)
    return Conversation.objects.get(pk=conversation.pk)


class TestUsedUp:
    """Every command refuses with the same sentence, and nothing is sent."""

    def test_a_message(self, used_up, conversation):
        with pytest.raises(CommandError, match=SENTENCE):
            socket_client._perform_command(conversation, events.Send("a1", "More"))

    def test_a_retry_and_another_reply(self, used_up, conversation):
        turn = conversation.turns.last()
        with pytest.raises(CommandError, match=SENTENCE):
            socket_client._perform_command(conversation, events.Regenerate(turn.pk))
        Turn.objects.filter(pk=turn.pk).update(state="failed")
        with pytest.raises(CommandError, match=SENTENCE):
            socket_client._perform_command(conversation, events.Retry(turn.pk))

    def test_the_first_message_of_a_new_conversation(self, used_up, client):
        answer = client.post("/c/", {"first": "Write a long story."})
        assert answer.status_code == 429
        assert SENTENCE in answer.content.decode()
        assert not Turn.objects.filter(state="queued").exists()

    def test_a_message_that_waited_while_others_used_them(self, used_up, conversation):
        commands.submit_message(conversation, text="Waiting", client_id="w1")
        claim = lifecycle.claim(conversation.pk)
        _, result = async_to_sync(runner.run_attempt)(claim)
        assert (result.state, result.error) == ("failed", "quota")
        assert used_up.calls == []

    def test_a_proposal(self, used_up, client, conversation):
        path = f"/c/{conversation.uuid}/memory/summarise/2/propose/"
        assert SENTENCE in client.post(path, headers=HTMX).content.decode()
        assert (used_up.calls, Job.objects.count()) == ([], 0)

    def test_a_rebuild(self, used_up, client, conversation):
        summarise(conversation, 1, 2)
        path = f"/c/{conversation.uuid}/memory/rebuild/"
        assert SENTENCE in client.post(path, headers=HTMX).content.decode()
        plain = client.post(path)
        assert plain.status_code == 429
        assert int(plain["Retry-After"]) > 0
        assert versions.active_summaries(conversation)

    def test_a_rebuild_by_staff(self, used_up, staff, conversation, rf):
        from chatsite.review.actions import services

        summarise(conversation, 1, 2)
        request = rf.post("/")
        request.user = staff
        with pytest.raises(actions.ActionError, match=SENTENCE):
            services.rebuild_as_staff(request, conversation, cause="lost")
        assert versions.active_summaries(conversation)

    def test_a_compact_by_hand(self, used_up, client, conversation):
        shown = client.post(url("compact", conversation), headers=HTMX)
        assert SENTENCE in shown.content.decode()
        assert shown["HX-Retarget"] == "#notice"

    def test_a_compaction_that_is_due_waits_for_new_tokens(
        self, used_up, client, conversation
    ):
        after = recompaction(conversation)
        assert used_up.calls == []
        assert after.compaction_failures == 0
        assert after.compaction_due_at > timezone.now()
        assert not ModelCall.objects.filter(purpose="summary").exists()
        [shown] = activity.list_activities(after)
        assert SENTENCE in shown.text
        assert SENTENCE in page_of(client, conversation)

    def test_a_title(self, used_up, alice, settings):
        settings.TITLES_ENABLED = True
        made = transcript.create_conversation(alice)
        Allowance.objects.update(tokens_used=0)
        talk_in_turns(made, "Hello there")
        Allowance.objects.update(tokens_used=1_000_000)
        async_to_sync(titles.name_conversation)(made.pk)
        assert used_up.calls == []
        assert not made.model_calls.filter(purpose="title").exists()


class TestPlaces:
    async def most_at_once(self, *payers):
        """Return how many requests are under way at once when all of these want one."""
        now = most = 0

        async def request(payer):
            nonlocal now, most
            async with spending.hold_place(payer, "demo"):
                now += 1
                most = max(most, now)
                await asyncio.sleep(0.3)
                now -= 1

        await asyncio.gather(*map(request, payers))
        return most

    async def test_a_process_has_a_few(self, settings, alice, bob):
        settings.SUMMARIES_AT_ONCE, settings.SUMMARIES_PER_USER = 3, 10
        assert await self.most_at_once(*[alice.pk, bob.pk] * 6) == 3

    async def test_a_user_has_fewer(self, settings, alice):
        settings.SUMMARIES_AT_ONCE, settings.SUMMARIES_PER_USER = 4, 2
        assert await self.most_at_once(*[alice.pk] * 8) == 2

    async def test_many_requests_of_one_user_delay_no_other_user(
        self, settings, alice, bob
    ):
        settings.SUMMARIES_PER_MINUTE = 0
        crowd = [asyncio.create_task(self.hold(alice.pk)) for _ in range(100)]
        await asyncio.sleep(0.3)
        assert await self.enters(bob.pk)
        for task in crowd:
            task.cancel()
        await asyncio.gather(*crowd, return_exceptions=True)

    async def enters(self, payer):
        try:
            async with asyncio.timeout(5), spending.hold_place(payer, "demo"):
                return True
        except TimeoutError:
            return False

    async def hold(self, payer):
        async with spending.hold_place(payer, "demo"):
            await asyncio.sleep(60)

    async def test_cancelled_request_takes_no_place(self, settings, alice):
        settings.SUMMARIES_PER_USER = 1
        first = asyncio.create_task(self.hold(alice.pk))
        await asyncio.sleep(0.2)
        second = asyncio.create_task(self.hold(alice.pk))
        await asyncio.sleep(0.1)
        for task in (second, first):
            task.cancel()
        await asyncio.gather(first, second, return_exceptions=True)
        assert await self.enters(alice.pk)

    async def test_request_ahead_of_the_pace_waits(self, settings, alice):
        settings.SUMMARIES_PER_MINUTE = 60
        ahead = Now() + limits.BURST - timedelta(seconds=0.5)
        values = {"next_summary_at": ahead}
        await Allowance.objects.aupdate_or_create(user=alice, defaults=values)
        loop = asyncio.get_running_loop()
        began = loop.time()
        async with spending.hold_place(alice.pk, "demo"):
            pass
        assert 0.3 < loop.time() - began < 10


class TestCompactions:
    async def test_an_import_of_many_asks_few_times_at_once(
        self, alice, upstream, settings, monkeypatch
    ):
        settings.SUMMARY_MODEL = "sum"
        lock, now, most = threading.Lock(), 0, 0

        def slow(exchange):
            nonlocal now, most
            with lock:
                now += 1
                most = max(most, now)
            exchange.wait(0.2)
            with lock:
                now -= 1
            exchange.texts("- They talked.")
            exchange.end()

        def make():
            for n in range(8):
                made = transcript.create_conversation(
                    alice, policy={"preset": "langgraph"}
                )
                for text in "abcd":
                    message, _ = transcript.append_user_message(
                        made, text=f"{text} {n} " * 30, client_id=text
                    )
                    transcript.append_reply(made, seq=message.seq + 1, text="Yes.")
                lease.mark_due(made.pk)

        monkeypatch.setitem(fake.MODES, "sum", slow)
        await database_sync_to_async(make)()
        await runner.sweep_due_work()
        async with asyncio.timeout(60):
            await asyncio.gather(*runner._tasks)
        assert len(upstream.calls) >= 8
        assert most == settings.SUMMARIES_PER_USER

    def test_compactions_of_users_come_in_turns(self, alice, bob):
        mine = [transcript.create_conversation(alice) for _ in range(3)]
        other = transcript.create_conversation(bob)
        for row in (*mine, other):
            lease.mark_due(row.pk)
        assert other.pk in lease.due_compactions(2)
        assert len(lease.due_compactions()) == 4

    async def test_a_sweep_starts_no_more_than_a_few(self, alice, monkeypatch):
        def make():
            for _ in range(runner.MAX_COMPACTING + 5):
                lease.mark_due(transcript.create_conversation(alice).pk)

        await database_sync_to_async(make)()
        started = []

        async def compact(conversation_id, **options):
            started.append(conversation_id)
            await asyncio.sleep(60)

        monkeypatch.setattr(runner, "_compact_if_due", compact)
        for _ in range(3):
            await runner.sweep_due_work()
            await asyncio.sleep(0.05)
        assert len(started) == len(set(started)) == runner.MAX_COMPACTING
        for task in list(runner._tasks):
            task.cancel()
        await asyncio.sleep(0.05)

    async def test_user_with_many_compactions_leaves_room_for_others(
        self, alice, bob, monkeypatch
    ):
        def make(owner, count):
            rows = [transcript.create_conversation(owner) for _ in range(count)]
            for row in rows:
                lease.mark_due(row.pk)
            return rows[-1].pk

        started = []

        async def compact(conversation_id, **options):
            started.append(conversation_id)
            await asyncio.sleep(60)

        monkeypatch.setattr(runner, "_compact_if_due", compact)
        await database_sync_to_async(make)(alice, runner.MAX_COMPACTING + 5)
        await runner.sweep_due_work()
        other = await database_sync_to_async(make)(bob, 1)
        await runner.sweep_due_work()
        await asyncio.sleep(0)
        assert started[runner.MAX_COMPACTING :] == [other]
        for task in list(runner._tasks):
            task.cancel()
        await asyncio.sleep(0.05)

    def test_a_stopped_compaction_rests_until_the_next_turn(
        self, conversation, upstream
    ):
        claim = lease.claim_compaction(conversation.pk, force=True)
        lease.stop_after_step(conversation.pk)
        lease.renew_compaction(claim)
        row = Conversation.objects.get(pk=conversation.pk)
        assert lease.is_stopped(row, claim)
        [shown] = activity.list_activities(row)
        assert "Stopping" in shown.text
        lease.release_compaction(claim)
        assert conversation.pk not in lease.due_compactions()


class TestBounds:
    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("chunk_tokens", 1),
            ("chunk_tokens", 499),
            *(
                (name, 2**31)
                for name, field in Policy.model_fields.items()
                if "int" in str(field.annotation)
            ),
            ("keep", ["messages", 2**31]),
            ("trigger", ["tokens", 2**31]),
            ("trigger", ["idle", 2**31]),
        ],
    )
    def test_a_number_beyond_reason_is_refused_by_name(self, name, value):
        with pytest.raises(PolicyError, match=name):
            Policy.load({name: value})

    def test_a_stored_policy_beyond_them_asks_no_thousand_times(self, alice, upstream):
        """Rows of before the bounds: the default policy holds."""
        made = transcript.create_conversation(alice)
        policy = {"preset": "langgraph", "chunk_tokens": 1}
        Conversation.objects.filter(pk=made.pk).update(policy=policy)
        made.refresh_from_db()
        assert made.get_policy().chunk_tokens == CHUNK_TOKENS
        assert "chunk_tokens" in made.policy_error


ROOT = Path(site_settings.BASE_DIR)
# The modules that may reach a model, and where their requests pass the rate limit; see
# the tests above.
REACHES = {
    # Admitted with the request of the client; the demo model, which costs nothing.
    "chatsite/contrib/endpoint/relay/provider_answer.py": "ReplyStream",
    # Each admitted as a job is, and before each of its requests.
    "chatsite/contrib/lab/examples/answers.py": "complete_request",
    "chatsite/contrib/lab/trials/job.py": "ReplyStream",
    "chatsite/turns/attempt.py": "ReplyStream",  # admitted with the turn, and in run()
    "chatsite/turns/requests.py": "fetch_reply",  # for runner.py alone
    "chatsite/turns/runner.py": "complete_request",  # make_summariser(), rate-limited
    "chatsite/turns/titles.py": "fetch_reply",
    "chatsite/features/tools/tool_loop/summaries.py": "complete_request",
    "chatsite/ops/management/commands/doctor.py": "fetch_reply",  # the operator's own
}


def test_listed_modules_alone_reach_a_model():
    found = {}
    for path in sorted((ROOT / "chatsite").rglob("*.py")):
        calls = r"requests\.(complete_request)|streaming\.(fetch_reply|ReplyStream)\("
        match = re.search(calls, path.read_text())
        name = str(path.relative_to(ROOT))
        if match and not name.startswith("chatsite/llm/"):
            found[name] = match[1] or match[2]
    assert found == REACHES


def test_turns_are_queued_only_where_they_are_admitted():
    names = "submit_message|send_message|edit_message|retry_turn|regenerate_reply"
    wanted = rf"commands\.({names})\b"
    found = {
        path.name: path.read_text().count("admit_turn")
        for path in (ROOT / "chatsite").rglob("*.py")
        if re.search(wanted, path.read_text())
    }
    # Those of demo.py and seed_demo.py have their replies already, by no model; that of
    # a branch is admitted where it is submitted (`is_limited`).
    assert found == {
        "socket_client.py": 2,
        "list_views.py": 1,
        "demo.py": 0,
        "seed_demo.py": 0,
        "services.py": 0,
    }
