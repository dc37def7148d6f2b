"""The outbox alone, without a server and a database: what is sent when, in which state,
and what is left out because something newer says it."""

import asyncio

import pytest
from django.core.exceptions import ObjectDoesNotExist
from django.db import OperationalError

from chatsite.live import outbox
from chatsite.live.outbox import FOLLOWING, Outbox, State
from chatsite.protocol import events

TURN = 7


class Line:
    """The server's end: what was written to it; its reader may be slow."""

    def __init__(self):
        self.sent, self.is_broken = [], False
        self.reads = asyncio.Event()
        self.reads.set()

    @property
    def is_flowing(self):
        return self.reads.is_set()

    def serverSend(self, text):  # noqa: N802
        if self.is_broken:
            raise OSError("broken")
        self.sent.append(text)

    async def drained(self):
        await self.reads.wait()


class View:
    """Frames are sent as they are; what a turn has come to has to be drawn."""

    def __init__(self):
        self.lacks, self.errors, self.pieces = False, [], ["page"]

    def at_once(self, event):
        if isinstance(event, events.State):
            return None
        if isinstance(event, events.Frame):
            return None if self.lacks else [event.tail]
        return [event.type]

    def draw_event(self, client, event):
        yield self._drawn([event.state])

    def sync(self, client):
        for piece in self.pieces:
            yield self._drawn([piece])

    def draw_answer(self, event):
        return [event.code]

    def _drawn(self, texts):
        if self.errors:
            raise self.errors.pop()
        return texts


class Share:
    """The database thread, which works when it is let."""

    def __init__(self):
        self.is_spent, self.visits = False, 0
        self.is_free = asyncio.Event()
        self.is_free.set()

    async def run_drawing(self, work, *args):
        self.visits += 1
        await self.is_free.wait()
        return work(*args)


class Scene:
    """An open outbox and all that is around it."""

    def __init__(self, *, with_line=True):
        self.line, self.view, self.share = Line(), View(), Share()
        self.server, self.missed, self.lost, self.checked = [], 0, 0, 0
        self.may_sync = True
        line = self.line if with_line else None
        self.box = Outbox(self.send, line, self.lose)
        self.box.start_worker(None, self.view, self.share, self.check, self.miss)

    async def send(self, message):
        if self.line.is_broken:
            raise OSError("broken")
        self.server.append(message)

    def lose(self):
        self.lost += 1

    def miss(self):
        self.missed += 1

    async def check(self):
        self.checked += 1
        return self.may_sync

    @property
    def sent(self):
        return self.line.sent

    async def rest(self):
        for _ in range(20):
            await asyncio.sleep(0)

    async def block(self):
        """Let the thread be busy with a drawing."""
        await self.rest()
        self.share.is_free.clear()
        self.box.queue_event(events.State(TURN, "drawn"))
        await self.rest()
        assert self.box.state is State.SENDING


@pytest.fixture
async def scene():
    scene = Scene()
    await scene.rest()
    assert scene.box.state is State.IDLE
    yield scene
    scene.box.stop_worker()


def frame(tail, base=0, attempt=1):
    return events.Frame(TURN, attempt, base, tail)


class TestOrder:
    async def test_words_are_sent_at_once_when_nothing_waits(self, scene):
        scene.box.queue_event(frame("One"))
        assert scene.sent == ["One"]
        assert scene.box.state is State.IDLE

    async def test_words_wait_for_what_is_drawn_before_them(self, scene):
        await scene.block()
        scene.box.queue_event(events.Title("T"))
        scene.box.queue_event(frame("One"))
        assert scene.sent == []
        scene.share.is_free.set()
        await scene.rest()
        assert scene.sent == ["drawn", "title", "One"]
        assert scene.box.state is State.IDLE

    async def test_outbox_without_a_transport_gives_all_messages_to_the_server(self):
        scene = Scene(with_line=False)
        for event in (frame("One"), events.Title("T"), frame("Two")):
            scene.box.queue_event(event)
        await scene.rest()
        assert [message["text"] for message in scene.server] == ["One", "title", "Two"]
        scene.box.stop_worker()

    async def test_an_answer_waits_for_nothing(self, scene):
        await scene.block()
        scene.line.reads.clear()
        await scene.box.send_answer(events.Error("busy", "Wait."))
        assert scene.sent == ["busy"]

    async def test_short_fragment_takes_one_visit_to_the_thread(self, scene):
        scene.view.pieces = ["one", "two", "three"]
        scene.box.sync()
        await scene.rest()
        assert scene.sent == ["one", "two", "three"]
        assert scene.share.visits == 1

    async def test_a_turn_takes_one_visit_however_slow(self, scene, monkeypatch):
        monkeypatch.setattr(outbox.pieces, "SLICE_SECONDS", 0.0)
        scene.box.queue_event(events.State(TURN, "drawn"))
        await scene.rest()
        assert (scene.sent, scene.share.visits) == (["drawn"], 1)


class TestReplacing:
    async def test_newest_of_waiting_frames_is_sent(self, scene):
        await scene.block()
        for number in range(1000):
            scene.box.queue_event(frame("x" * number))
        scene.share.is_free.set()
        await scene.rest()
        assert scene.sent == ["drawn", "x" * 999]

    async def test_a_frame_that_says_more_is_kept(self, scene):
        await scene.block()
        told = [frame("a"), frame("b", 1), frame("c", 0, 2), events.Title("T")]
        for event in (*told, frame("d", 0, 2)):
            scene.box.queue_event(event)
        scene.share.is_free.set()
        await scene.rest()
        assert scene.sent == ["drawn", "a", "b", "c", "title", "d"]

    async def test_a_slow_reader_gets_the_newest_words_only(self, scene):
        scene.line.reads.clear()
        for number in range(1000):
            scene.box.queue_event(frame(f"{number}"))
            await asyncio.sleep(0)
        # The first was on its way when the reader stopped.
        assert len(scene.box._queue) <= 1
        scene.line.reads.set()
        await scene.rest()
        assert scene.sent in (["999"], ["0", "999"])
        assert scene.box.state is State.IDLE

    async def test_queue_of_too_many_events_becomes_a_sync(self, scene, monkeypatch):
        monkeypatch.setattr(outbox, "MAX_QUEUED", 3)
        await scene.block()
        scene.box.queue_event(events.Title("T"))
        for number in range(3):
            scene.box.queue_event(events.State(TURN, f"state {number}"))
        assert scene.box.state is State.BEHIND
        scene.share.is_free.set()
        await scene.rest()
        # What the database does not say of turns is not lost.
        assert scene.sent == ["drawn", "page", "title"]


class TestSync:
    async def test_sync_waits_for_a_drawing_and_precedes_all_events(self, scene):
        await scene.block()
        scene.box.queue_event(events.Title("T"))
        for _ in range(5):
            scene.box.sync()
        assert scene.box.state is State.BEHIND
        scene.share.is_free.set()
        await scene.rest()
        assert scene.sent == ["drawn", "page", "title"]

    async def test_syncs_requested_during_a_sync_become_one_more(self, scene):
        scene.share.is_free.clear()
        scene.box.sync()
        await scene.rest()
        assert scene.box.state is State.SYNCING
        for _ in range(5):
            scene.box.sync()
        scene.box.queue_event(frame("One"))
        scene.share.is_free.set()
        await scene.rest()
        assert scene.sent == ["page", "page", "One"]

    async def test_words_for_a_page_that_lacks_some_become_a_sync(self, scene):
        scene.view.lacks = True
        scene.box.queue_event(frame("One", 100))
        assert scene.box.state is State.BEHIND
        await scene.rest()
        assert scene.sent == ["page"]

    async def test_pieces_of_a_long_page_come_in_order(self, scene, monkeypatch):
        monkeypatch.setattr(outbox.pieces, "SLICE_SECONDS", 0.0)
        scene.view.pieces = [f"piece {number}" for number in range(10)]
        scene.line.reads.clear()
        scene.box.sync()
        for number in range(10):
            await scene.rest()
            scene.box.queue_event(frame(f"{number}"))
            scene.line.reads.set()
            await asyncio.sleep(0)
            scene.line.reads.clear()
        scene.line.reads.set()
        await scene.rest()
        assert scene.sent[:10] == scene.view.pieces
        assert scene.sent[-1] == "9"

    async def test_requested_sync_is_checked_and_may_be_refused(self, scene):
        scene.box.sync(is_asked=True)
        assert scene.box.state is State.ASKED
        await scene.rest()
        assert (scene.sent, scene.checked) == (["page"], 1)
        scene.may_sync = False
        scene.box.sync(is_asked=True)
        await scene.rest()
        assert (scene.sent, scene.checked) == (["page"], 2)
        scene.may_sync, scene.view.errors = True, [OperationalError("away")]
        scene.box.sync(is_asked=True)
        await scene.rest()
        assert (scene.sent, scene.missed) == (["page", "unavailable"], 1)

    async def test_requested_sync_stays_requested(self, scene):
        scene.box.sync(is_asked=True)
        scene.box.sync()
        assert scene.box.state is State.ASKED

    async def test_user_with_a_spent_share_gets_one_page_for_many_events(self, scene):
        scene.share.is_spent = True
        for number in range(10):
            scene.box.queue_event(events.State(TURN, f"state {number}"))
        await scene.rest()
        assert scene.sent == ["page"]

    async def test_event_of_a_deleted_object_becomes_a_sync(self, scene):
        scene.view.errors = [ObjectDoesNotExist()]
        scene.box.queue_event(events.State(TURN, "drawn"))
        await scene.rest()
        assert scene.sent == ["page"]

    async def test_a_database_that_is_away_is_asked_later(self, scene):
        scene.view.errors = [OperationalError("away"), OperationalError("away")]
        scene.box.queue_event(events.State(TURN, "drawn"))
        await scene.rest()
        scene.box.sync()
        await scene.rest()
        assert (scene.sent, scene.missed) == ([], 2)
        assert scene.box.state is State.IDLE


class TestEnd:
    async def test_outbox_sends_nothing_after_a_close(self, scene):
        scene.view.pieces = ["one", "two"]
        scene.line.reads.clear()
        scene.box.sync()
        scene.box.queue_event(events.Title("T"))
        await scene.rest()
        await scene.box.close(1012)
        scene.line.reads.set()
        for act in (scene.box.sync, lambda: scene.box.queue_event(frame("One"))):
            act()
        await scene.box.send_answer(events.Error("busy", "Wait."))
        await scene.rest()
        await scene.box.close(4401)
        assert scene.server == [{"type": "websocket.close", "code": 1012}]
        assert scene.sent == []
        assert scene.box._worker.done()
        assert scene.lost == 0

    async def test_a_close_does_not_wait_for_a_drawing(self, scene):
        await scene.block()
        await scene.box.close(4401)
        assert scene.server == [{"type": "websocket.close", "code": 4401}]
        scene.share.is_free.set()
        await scene.rest()
        assert scene.sent == []

    async def test_a_page_that_is_gone_is_told_so(self, scene):
        scene.view.errors = [ObjectDoesNotExist()]
        scene.box.sync()
        await scene.rest()
        assert scene.server == [{"type": "websocket.close", "code": 4404}]

    async def test_a_lost_connection_is_let_go(self, scene):
        scene.line.is_broken = True
        scene.box.queue_event(events.Title("T"))
        await scene.rest()
        assert scene.box.is_closed
        assert scene.lost
        assert scene.box._worker.done()

    async def test_a_defect_closes_the_socket_and_is_logged(self, scene, caplog):
        scene.view.errors = [ZeroDivisionError()]
        scene.box.sync()
        await scene.rest()
        assert scene.server == [{"type": "websocket.close", "code": 1011}]
        assert "socket failed while SYNCING" in caplog.text

    async def test_words_that_cannot_be_sent_fail_no_one_else(self, scene, caplog):
        scene.line.is_broken = True
        scene.box.queue_event(frame("One"))
        scene.line.is_broken = False
        await scene.rest()
        assert scene.sent == ["page"]
        assert "socket failed at a frame" in caplog.text

    async def test_a_connection_that_is_gone_ends_the_work(self, scene):
        await scene.block()
        scene.box.stop_worker()
        await scene.rest()
        assert scene.box._worker.cancelled()


def test_every_state_can_be_left_but_the_last():
    assert FOLLOWING.keys() == set(State)
    assert not FOLLOWING[State.CLOSED]
    for state in set(State) - {State.CLOSED}:
        assert State.CLOSED in FOLLOWING[state]
    # A page that lacks something gets nothing else first.
    for state in (State.BEHIND, State.ASKED):
        assert not FOLLOWING[state] & {State.IDLE, State.SENDING}
