"""Small windows: messages beyond them are summarised, or shown as not sent."""

import random
import uuid

import pytest
from asgiref.sync import async_to_sync
from channels.db import database_sync_to_async
from django.core.checks import run_checks

from chatsite.pages.presenters import context_pane
from chatsite.turns import attempt, commands, lifecycle, requests, runner
from chatsite.turns.models import Turn
from memory import transcript
from memory.compaction import compactor, lease
from memory.models import Conversation, ModelCall
from memory.view import places
from tests.patience import within

pytestmark = pytest.mark.django_db(transaction=True)

TEXT = "the quick brown fox jumps over lazy dogs near the river while Anna reads"


def words(source, count):
    return " ".join(source.choice(TEXT.split()) for _ in range(count))


def ask(conversation, text):
    commands.submit_message(conversation, text=text, client_id=uuid.uuid4().hex)
    claim = lifecycle.claim(conversation.pk)
    request = attempt.prepare_attempt(claim)
    return lifecycle.begin(claim, request.built, request.model), request


# In a window of 4,096 tokens twenty turns of the others nearly fit.
@pytest.mark.parametrize(
    ("preset", "window"),
    [
        *(("layered", 4096), ("layered", 2048), ("langgraph", 2048)),
        *(("langmem", 2048), ("guide", 2048)),
    ],
)
def test_requests_leave_out_only_messages_that_a_summary_covers(
    alice, settings, window, preset
):
    settings.CONTEXT_WINDOW = window
    conversation = transcript.create_conversation(alice, preset=preset)
    source = random.Random(3)
    left_out = []
    for number in range(60 if preset == "layered" else 20):
        claim, request = ask(conversation, words(source, 40) + f" item {number}")
        left_out += request.built.refs["left_out"]
        assert request.built.tokens <= requests.limit_of("demo")
        lifecycle.finish(
            claim, lifecycle.TurnResult(Turn.State.DONE, words(source, 90))
        )
        async_to_sync(compactor.compact_conversation)(
            conversation.pk,
            runner.make_summariser("demo", payer=alice.pk),
            open_from=lifecycle.open_from,
            context_window=window,
        )
        conversation = Conversation.objects.get(pk=conversation.pk)
    assert left_out == []
    assert conversation.compaction_failures == 0


def fill(conversation, count, length=90):
    """Turns that no compaction has looked at."""
    source = random.Random(4)
    for _ in range(count):
        message, _ = transcript.append_user_message(
            conversation, text=words(source, 40), client_id=uuid.uuid4().hex
        )
        transcript.append_reply(
            conversation, seq=message.seq + 1, text=words(source, length)
        )


def drive(conversation, text="And now?"):
    """Send a message and let the runner answer it, with the compactions it starts."""

    async def work():
        await database_sync_to_async(commands.submit_message)(
            conversation, text=text, client_id=uuid.uuid4().hex
        )
        await runner._drive_turns(conversation.pk)

    async_to_sync(work)()
    call = ModelCall.objects.filter(purpose="reply").latest("pk")
    return conversation.turns.latest("pk"), call


class TestBeforeTheRequest:
    @pytest.fixture
    def conversation(self, alice, settings):
        settings.CONTEXT_WINDOW = 2048
        settings.TITLES_ENABLED = False
        conversation = transcript.create_conversation(alice)
        fill(conversation, 14)
        return conversation

    def test_messages_that_do_not_fit_are_compacted_first(self, conversation):
        turn, call = drive(conversation)
        assert turn.state == Turn.State.DONE
        assert call.refs["left_out"] == []
        assert call.refs["summaries"]

    def test_a_reply_that_fills_the_window_is_compacted_as_well(self, alice, settings):
        settings.CONTEXT_WINDOW = 2048
        conversation = transcript.create_conversation(alice)
        fill(conversation, 1, length=1100)
        turn, call = drive(conversation)
        assert turn.state == Turn.State.DONE
        assert call.refs["left_out"] == []

    def test_slow_summariser_delays_the_request_only_for_a_while(
        self, conversation, settings, upstream
    ):
        settings.SUMMARY_MODEL = "hang"
        settings.SUMMARY_TOTAL_TIMEOUT = 40
        settings.COMPACTION_WAIT_SECONDS = 1.0
        with within(30):
            turn, call = drive(conversation)
        assert turn.state == Turn.State.DONE
        assert call.refs["left_out"] != []

    def test_request_is_sent_at_once_while_compaction_fails(
        self, conversation, settings
    ):
        Conversation.objects.update(compaction_failures=lease.MAX_FAILURES)
        turn, call = drive(conversation)
        assert turn.state == Turn.State.DONE
        assert call.refs["left_out"] != []
        conversation.refresh_from_db()
        settings.CONTEXT_WINDOW = 1024
        view = context_pane.model_view(conversation)
        assert view.counts["unsent"] > 0
        assert view.accounted == view.total - view.counts["unsent"]

    def test_request_is_sent_at_once_when_waiting_is_off(self, conversation, settings):
        settings.COMPACTION_WAIT_SECONDS = 0
        _, call = drive(conversation)
        assert call.refs["left_out"] != []


def test_messages_that_do_not_fit_are_counted_as_not_sent(alice, settings):
    settings.CONTEXT_WINDOW = 2048
    conversation = transcript.create_conversation(alice)
    fill(conversation, 14)
    built = requests.next_turn(conversation)
    left_out = sum(b - a + 1 for a, b in built.refs["left_out"])
    counts = places.count_places(conversation, built.refs)
    assert left_out > 0
    assert counts == {"window": 28 - left_out, "unsent": left_out}


def test_the_page_names_the_threshold_that_is_in_force(alice, settings):
    settings.CONTEXT_WINDOW = 4096
    view = context_pane.model_view(transcript.create_conversation(alice))
    assert view.gauge.window_limit < 4000
    assert "4,000" not in view.compact_rule
    settings.CONTEXT_WINDOW = 32_000
    view = context_pane.model_view(transcript.create_conversation(alice))
    assert (view.gauge.window_limit, "4,000" in view.compact_rule) == (4000, True)


class TestCheck:
    def found(self):
        return [m for m in run_checks() if m.id in ("chat.W005", "chat.E004")]

    @pytest.mark.parametrize("window", [0, 16_000, 128_000])
    def test_windows_that_hold_the_presets_are_fine(self, settings, window):
        settings.CONTEXT_WINDOW = window
        assert self.found() == []

    @pytest.mark.parametrize("window", [4096, 2048])
    def test_warning_names_the_thresholds_that_cannot_work(self, settings, window):
        settings.CONTEXT_WINDOW = window
        (warning,) = self.found()
        assert "trigger of 4,000 tokens (layered" in warning.msg
        assert "REPLY_RESERVE of 2,000" in warning.msg

    def test_a_window_without_room_is_an_error(self, settings):
        settings.CONTEXT_WINDOW = 600
        assert "chat.E004" in [message.id for message in self.found()]
