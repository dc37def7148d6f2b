"""Passing a reply on while the database or the layer is away, slow or lost."""

import asyncio
import time
from itertools import pairwise

import pytest
from django.db import IntegrityError, OperationalError

from chatsite.protocol import events, layer
from chatsite.turns import checkpoints, lifecycle, reply_streamer
from memory import database
from tests.patience import PATIENCE

TRANSIENT_DB_ERRORS = OperationalError("the server closed the connection")


class Stream:
    """A provider that says a word every few milliseconds."""

    reasoning = ""
    finish_reason = None

    def __init__(self, words):
        self.words = words
        self.is_closed = False

    async def __aiter__(self):
        for number in range(self.words):
            await asyncio.sleep(0.02)
            yield f"{number} "

    async def aclose(self):
        self.is_closed = True


pytestmark = pytest.mark.django_db(transaction=True)


class Database:
    """Takes checkpoints, or answers them with what a test has put into `answers`."""

    def __init__(self):
        self.saved, self.answers, self.calls = [], [], 0

    def checkpoint(self, claim, text):
        self.calls += 1
        answer = self.answers.pop(0) if self.answers else lifecycle.LeaseStatus.KEPT
        if isinstance(answer, Exception):
            raise answer
        if callable(answer):
            answer()
        self.saved.append(text)
        return lifecycle.LeaseStatus.KEPT if callable(answer) else answer


@pytest.fixture
def saving(monkeypatch):
    fake = Database()
    monkeypatch.setattr(checkpoints, "CHECKPOINT_SECONDS", 0.1)
    monkeypatch.setattr(lifecycle, "checkpoint", fake.checkpoint)
    return fake


@pytest.fixture
def frames(monkeypatch):
    seen = []

    def deliver(conversation_id, event):
        seen.append(event)

    monkeypatch.setattr(events, "deliver_event", deliver)
    return seen


def a_relay(words=30):
    claim = lifecycle.TurnClaim(1, "owner", 1, 1, renewed_at=time.monotonic())
    return reply_streamer.ReplyStreamer(claim, Stream(words), asyncio.Event())


def text_of(words):
    return "".join(f"{number} " for number in range(words))


async def test_a_failed_checkpoint_is_tried_again_while_the_stream_goes_on(
    saving, frames
):
    saving.answers = [TRANSIENT_DB_ERRORS, TRANSIENT_DB_ERRORS]
    going = a_relay()
    assert await going.run() is None
    assert (going.hold, going.text) == (lifecycle.LeaseStatus.KEPT, text_of(30))
    assert saving.calls > len(saving.saved) > 0
    assert text_of(30).startswith(saving.saved[-1])


async def test_streamer_stops_when_the_lease_is_not_renewed(saving, frames, settings):
    settings.TURN_LEASE_SECONDS = 0.3
    saving.answers = [TRANSIENT_DB_ERRORS] * 100
    going = a_relay(words=1000)
    await going.run()
    assert going.hold is lifecycle.LeaseStatus.LOST
    assert going.stream.is_closed
    assert len(going.text) < len(text_of(100))


async def test_a_slow_database_holds_up_no_frame(saving, frames):
    saving.answers = [lambda: time.sleep(0.4)]
    await a_relay().run()
    assert len(frames) >= 8


async def test_a_timer_that_ends_early_keeps_no_word_back(saving, frames, monkeypatch):
    """Timers of uvloop can end early: the text would wait for the next word."""
    clock = Clock(time.monotonic())
    monkeypatch.setattr(reply_streamer, "monotonic", clock.read)
    going = a_relay()
    going.stream = clock.between(10, reply_streamer.FRAME_SECONDS - 0.001)
    await going.run()
    assert len(frames) == 10


async def test_frames_of_all_replies_are_sent_at_the_same_moments(saving, monkeypatch):
    """Fifty replies wake the process eleven times a second, not each of them."""

    async def send_from(start):
        clock, sent_at = Clock(start), []

        async def sleep(seconds):
            clock.now += seconds

        monkeypatch.setattr(reply_streamer, "monotonic", clock.read)
        monkeypatch.setattr(reply_streamer.asyncio, "sleep", sleep)
        monkeypatch.setattr(
            events, "deliver_event", lambda *_: sent_at.append(clock.now)
        )
        going = a_relay()
        going.stream = clock.between(5, 0)
        await going.run()
        return sent_at

    one, other = await send_from(10.001), await send_from(10.07)
    assert len(one) == 5
    assert (one[0], other[0]) == (10.001, 10.07)
    assert one[1:] == other[1:]
    assert [b - a for a, b in pairwise(one[1:])] == pytest.approx(
        [reply_streamer.FRAME_SECONDS] * 3
    )


@pytest.mark.parametrize("early", [2e-6, 2.5e-6, 3e-6, 6e-6])
async def test_a_timer_that_ends_early_puts_no_checkpoint_off(
    early, saving, frames, monkeypatch
):
    """The moment can have come when a wait is worked out, and not just before that."""
    clock, saved_at = EarlyTimers(early), []
    going = a_relay()
    going.stream = Hanging(1)

    def checkpoint(claim, text):
        saved_at.append(clock.now)
        if len(saved_at) == 5:
            going.stop.set()
        return lifecycle.LeaseStatus.KEPT

    monkeypatch.setattr(lifecycle, "checkpoint", checkpoint)
    monkeypatch.setattr(checkpoints, "monotonic", clock.read)
    monkeypatch.setattr(reply_streamer, "monotonic", clock.read)
    monkeypatch.setattr(reply_streamer.asyncio, "wait", clock.wait)
    await going.run()
    between = [after - at for at, after in pairwise(saved_at)]
    assert max(between) < checkpoints.CHECKPOINT_SECONDS * 1.1


class EarlyTimers:
    """Time that passes with each look at it; and waits for it that end a bit early."""

    def __init__(self, early):
        self.now, self.early = time.monotonic(), early
        self._wait = asyncio.wait

    def read(self):
        self.now += 1e-6
        return self.now

    async def wait(self, awaited, **options):
        if len(awaited) > 2:  # a checkpoint is under way, which takes no time here
            return await self._wait(awaited, **options | {"timeout": 60})
        self.now += max(options["timeout"] - self.early, 0)
        return await self._wait(awaited, **options | {"timeout": 0.001})


class Hanging(Stream):
    """Says its words, and nothing more."""

    async def __aiter__(self):
        async for word in super().__aiter__():
            yield word
        await asyncio.Event().wait()


class Clock:
    def __init__(self, now):
        self.now = now

    def read(self):
        return self.now

    def between(self, words, seconds):
        """A stream that is always read so many seconds after its last word."""
        clock = self

        class Paced(Stream):
            async def __aiter__(self):
                for number in range(words):
                    clock.now += seconds
                    yield f"{number} "

        return Paced(words)


@pytest.fixture
def elsewhere(monkeypatch):
    """Other processes: the frames they are offered, how many receive them, how soon."""

    class Elsewhere:
        offered, processes, seconds = [], 0, 0.0

    async def offer(conversation_id, event):
        there.offered.append(event)
        await asyncio.sleep(there.seconds)
        return there.processes

    there = Elsewhere()
    there.offered = []

    async def ask(method, groups):
        return True, set()

    monkeypatch.setattr(layer, "is_shared", lambda: True)
    monkeypatch.setattr(layer, "_ask_layer", ask)
    monkeypatch.setattr(events, "offer_event", offer)
    return there


async def test_few_frames_are_offered_without_other_listeners(
    saving, frames, elsewhere
):
    await a_relay().run()
    assert len(frames) >= 8
    assert elsewhere.offered == frames[:1]


@pytest.mark.parametrize("processes", [1, None])
async def test_every_frame_is_offered_where_another_process_may_listen(
    saving, frames, elsewhere, processes
):
    elsewhere.processes = processes
    await a_relay().run()
    assert elsewhere.offered == frames


async def test_process_that_begins_to_listen_is_soon_heard(
    saving, frames, elsewhere, monkeypatch
):
    async def ask(method, groups):
        assert method == "find_heard"
        elsewhere.processes = 1
        return True, groups

    monkeypatch.setattr(layer, "_ask_layer", ask)
    await a_relay().run()
    assert elsewhere.offered == [frames[0], *frames[2:]]


async def test_a_slow_layer_holds_up_no_checkpoint(saving, elsewhere):
    elsewhere.seconds = 0.3
    going = a_relay()
    await going.run()
    assert saving.calls >= 3
    assert going.text == text_of(30)


async def test_streamer_sends_nothing_after_its_lease_has_expired(saving, frames):
    going = a_relay(words=1000)
    going.claim = lifecycle.TurnClaim(
        1, "owner", 1, 1, renewed_at=time.monotonic() - 60
    )
    await going.run()
    assert going.hold is lifecycle.LeaseStatus.LOST
    assert frames == []


async def test_a_bug_in_a_checkpoint_ends_the_turn(saving, frames):
    saving.answers = [IntegrityError("no such column")]
    with pytest.raises(IntegrityError):
        await a_relay(words=1000).run()


class TestRetry:
    async def test_retry_repeats_until_the_database_answers(self):
        answers = [TRANSIENT_DB_ERRORS, TRANSIENT_DB_ERRORS, "done"]
        until = time.monotonic() + 5 * PATIENCE
        assert await database.retry(raise_or_return, answers, until=until) == "done"

    async def test_retry_raises_the_error_when_time_is_up(self):
        until = time.monotonic() + 0.3
        with pytest.raises(OperationalError):
            await database.retry(
                raise_or_return, [TRANSIENT_DB_ERRORS] * 99, until=until
            )

    async def test_retry_raises_permanent_errors_at_once(self):
        answers = [IntegrityError("twice"), "done"]
        until = time.monotonic() + 5 * PATIENCE
        with pytest.raises(IntegrityError):
            await database.retry(raise_or_return, answers, until=until)
        assert answers == ["done"]


def raise_or_return(answers):
    answer = answers.pop(0)
    if isinstance(answer, Exception):
        raise answer
    return answer
