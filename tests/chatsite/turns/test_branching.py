"""Branches: a new conversation from any message, with its past whole and proved."""

import pytest

from chatsite.protocol.errors import CommandError
from chatsite.turns import commands, lifecycle
from chatsite.turns.copying import copies
from chatsite.turns.models import Turn
from memory import actions, bundle, context, transcript, versions
from memory.models import Conversation, Message, ModelCall, Summary
from memory.search import recall
from memory.view import rebuilding
from tests.memory.scenes import summarise
from tests.remembered import remembered

from ..scenes import page_of, signed_in, talk_in_turns, url, violations


def shown(conversation):
    rows = conversation.messages.filter(superseded_at=None).order_by("seq")
    return [(row.seq, row.text) for row in rows]


@pytest.fixture
@remembered
def long(alice):
    made = transcript.create_conversation(
        alice, title="Long", system_prompt="Be brief."
    )
    talk_in_turns(made, "One", "Two")
    summarise(made, 1, 2)
    talk_in_turns(made, "Three", "Four")
    summarise(made, 3, 6)
    talk_in_turns(made, "Five")
    return made


def test_branch_copies_everything_up_to_the_message(long):
    actions.pin_message(long, 2)
    made = copies.branch_conversation(long, 6)
    source = long.messages.filter(seq__lte=6).order_by("seq")
    copy = made.messages.order_by("seq")
    for name in ("seq", "role", "text", "created_at", "pinned_at", "client_id"):
        assert list(copy.values_list(name)) == list(source.values_list(name))
    assert (made.branched_from, made.branched_seq) == (long, 6)
    assert (made.title, made.system_prompt) == ("Long (branch)", "Be brief.")
    assert made.next_seq == 7
    assert violations() == []


def test_branch_has_the_summaries_before_the_message(long):
    made = copies.branch_conversation(long, 6)
    assert [(s.version, s.last_seq) for s in versions.active_summaries(made)] == [
        (1, 2),
        (2, 6),
    ]
    shorter = copies.branch_conversation(long, 5)
    assert [s.version for s in versions.active_summaries(shorter)] == [1]
    assert violations() == []


def test_branch_keeps_the_requests_of_its_replies(long):
    made = copies.branch_conversation(long, 8)
    calls = made.model_calls.filter(purpose="reply")
    assert calls.count() == 4
    assert all(rebuilding.verify_context(call) for call in calls)
    assert {s.version for call in calls for s in versions.active_summaries(made)} == {
        1,
        2,
    }


def test_branch_and_original_go_on_apart(long):
    made = copies.branch_conversation(long, 4)
    talk_in_turns(made, "Elsewhere")
    assert shown(made)[-2:] == [(5, "Elsewhere"), (6, "Reply to: Elsewhere")]
    assert shown(long)[-1] == (10, "Reply to: Five")
    assert violations() == []


def test_a_branch_at_a_question_has_its_reply_to_come(long):
    made = copies.branch_conversation(long, 7)
    turn = made.turns.order_by("pk").last()
    assert (turn.state, turn.error, turn.reply) == ("stopped", "no_reply", None)
    assert commands.retry_turn(made, turn.pk).state == Turn.State.QUEUED
    assert violations() == []


def test_branch_starts_from_an_earlier_wording(long):
    commands.edit_message(long, seq=7, text="Four, but better", client_id="better")
    talk_in_turns(long, "Six")
    made = copies.branch_conversation(long, 10)
    assert [text for _, text in shown(made)][-2:] == ["Five", "Reply to: Five"]
    assert len(shown(made)) == 10
    assert violations() == []


def test_branch_starts_from_an_earlier_reply(alice):
    made = transcript.create_conversation(alice)
    talk_in_turns(made, "One")
    commands.regenerate_reply(made, made.turns.get().pk)
    claim = lifecycle.claim(made.pk)
    built = context.build_request_context(
        made, newest=made.messages.get(seq=1), model="demo"
    )
    claim = lifecycle.begin(claim, built, "demo")
    lifecycle.finish(claim, lifecycle.TurnResult(Turn.State.DONE, "Another"))
    first, second = (
        copies.branch_conversation(made, 2),
        copies.branch_conversation(made, 3),
    )
    assert shown(first) == [(1, "One"), (2, "Reply to: One")]
    assert shown(second) == [(1, "One"), (3, "Another")]
    assert second.messages.get(seq=2).superseded_at
    assert violations() == []


def test_unfinished_reply_is_not_copied(long):
    commands.submit_message(long, text="Wait", client_id="w")
    lifecycle.checkpoint(lifecycle.claim(long.pk), "Half a rep")
    made = copies.branch_conversation(long, 11)
    turn = made.turns.order_by("pk").last()
    assert (turn.state, turn.text) == ("stopped", "")
    assert violations() == []


def test_branch_can_be_searched(long):
    made = copies.branch_conversation(long, 8)
    assert recall.recall_messages(made, "three")[0].seq in (5, 6)


def test_branch_outlives_its_original(long):
    made = copies.branch_conversation(long, 8)
    long.delete()
    made.refresh_from_db()
    assert made.branched_from is None
    assert violations() == []


@pytest.mark.parametrize("seq", [0, 99])
def test_branch_needs_an_existing_message(long, seq):
    with pytest.raises(CommandError):
        copies.branch_conversation(long, seq)


def test_branch_from_a_deleted_message_is_refused(long):
    actions.delete_message(long, 4)
    with pytest.raises(CommandError):
        copies.branch_conversation(long, 4)
    made = copies.branch_conversation(long, 6)
    assert made.messages.get(seq=4).text == ""
    assert [v for v in violations() if f"conversation={made.pk} " in v] == []


class TestPage:
    def test_answer_redirects_to_the_branch(self, client, conversation):
        answer = client.post(url("branch", conversation), {"seq": 2})
        made = Conversation.objects.exclude(pk=conversation.pk).get()
        assert answer.url == url("detail", made)
        assert b"Branched from" in client.get(answer.url).content

    def test_htmx_request_redirects_to_the_branch(self, client, conversation):
        headers = {"HX-Request": "true"}
        answer = client.post(url("branch", conversation), {"seq": 2}, headers=headers)
        assert answer["HX-Redirect"].startswith("/c/")

    @pytest.mark.parametrize("seq", ["", "x", "0", "99", "9" * 30])
    def test_number_without_a_message_is_refused(self, client, conversation, seq):
        assert client.post(url("branch", conversation), {"seq": seq}).status_code == 404
        assert Conversation.objects.count() == 1

    def test_conversation_of_another_user_is_not_found(self, bob, conversation):
        answer = signed_in(bob).post(url("branch", conversation), {"seq": 2})
        assert answer.status_code == 404
        assert Message.objects.count() == 4

    def test_branch_counts_as_a_new_conversation(self, client, conversation, settings):
        settings.CONVERSATIONS_PER_MINUTE = 0.2
        codes = [
            client.post(url("branch", conversation), {"seq": 2}).status_code
            for _ in range(3)
        ]
        assert codes[0] == 302
        assert codes[-1] == 429


class TestRegenerate:
    @pytest.fixture
    def asked_again(self, conversation):
        turn = conversation.turns.order_by("pk").last()
        commands.regenerate_reply(conversation, turn.pk)
        return turn

    def test_latest_reply_is_queued_again_and_kept(self, conversation, asked_again):
        asked_again.refresh_from_db()
        assert (asked_again.state, asked_again.reply) == ("queued", None)
        assert asked_again.reply_seq == 5
        assert conversation.messages.get(seq=4).superseded_at
        assert violations() == []

    def test_page_has_every_version_of_the_reply(
        self, client, conversation, asked_again
    ):
        claim = lifecycle.claim(conversation.pk)
        question = conversation.messages.get(seq=3)
        built = context.build_request_context(
            conversation, newest=question, model="demo"
        )
        claim = lifecycle.begin(claim, built, "demo")
        lifecycle.finish(claim, lifecycle.TurnResult(Turn.State.DONE, "Another"))
        page = page_of(client, conversation)
        assert "Reply to: What is my budget?" in page
        assert page.index("Another") > page.index('class="wordings"')
        assert '<span class="at">2</span> / 2' in page
        assert violations() == []

    def test_earlier_reply_is_not_regenerated(self, conversation):
        first = conversation.turns.order_by("pk").first()
        with pytest.raises(CommandError, match="latest"):
            commands.regenerate_reply(conversation, first.pk)

    def test_regenerate_is_refused_while_a_reply_is_written(
        self, conversation, asked_again
    ):
        with pytest.raises(CommandError, match="still being written"):
            commands.regenerate_reply(conversation, asked_again.pk)

    def test_regenerate_makes_a_summary_of_the_reply_stale(self, conversation):
        summarise(conversation, 1, 4)
        turn = conversation.turns.order_by("pk").last()
        commands.regenerate_reply(conversation, turn.pk)
        assert versions.active_summaries(conversation) == []
        assert violations() == []


GENERATED = ("trigger_kind", "unsupported")


@pytest.mark.parametrize(
    ("model", "carried", "made_anew"),
    [
        (
            Message,
            bundle.MESSAGE_FIELDS,
            {"id", "conversation_id", "tokens", "signature"},
        ),
        (
            Summary,
            bundle.SUMMARY_FIELDS,
            {"id", "conversation_id", "signature", "status_signature", *GENERATED},
        ),
        (
            ModelCall,
            bundle.CALL_FIELDS,
            # What was paid for a cache stays with the request that paid it.
            {
                *("id", "conversation_id", "message_id", "summary_id", "signature"),
                "tokens_extra",
            },
        ),
    ],
)
def test_every_column_is_copied_or_generated(model, carried, made_anew):
    columns = {field.attname for field in model._meta.fields}
    assert columns - set(carried) == made_anew
