"""The next words of a reply are sent while their publisher waits, but never past
earlier events."""

import pytest
from channels.db import database_sync_to_async

from chatsite.protocol import events
from chatsite.turns.models import Turn
from memory import transcript

from ..sockets import TIMEOUT, Chat

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def conversation(alice):
    return transcript.create_conversation(alice)


def tell(conversation, *told):
    for event in told:
        events.deliver_event(conversation.pk, event)


async def test_words_are_sent_at_once(conversation, session, upstream):
    async with Chat(conversation, session, with_transport=True) as chat:
        end = await chat.say("Hello")
        turn = end["turn"]
        tell(conversation, events.Frame(turn, 1, 0, "One"))
        assert chat.waiting == 1
        tell(conversation, events.Frame(turn, 1, 3, " two"))
        assert [(await chat.event())["tail"] for _ in range(2)] == ["One", " two"]


@pytest.mark.parametrize("protocol", ["windowpane.json", ""])
async def test_words_do_not_overtake_what_was_told_before(
    conversation, session, upstream, settings, protocol
):
    settings.CHAT_MODEL = "ok-slow:200:0.05"
    options = {"protocol": protocol, "with_transport": True}
    async with Chat(conversation, session, **options) as chat:
        await chat.command(type="send", client_id="c", text="Hello")
        await (chat.until("frame") if protocol else chat.html("assistant live"))
        turn = await database_sync_to_async(Turn.objects.get)()
        state = events.State(turn.pk, "running")
        before = chat.waiting
        # Nothing of it is sent until the socket's own task is next.
        tell(conversation, state, events.Frame(turn.pk, 9, 0, "New start"))
        assert chat.waiting == before
        seen = ""
        while "New start" not in seen:
            seen += await chat.socket.receive_from(timeout=TIMEOUT)
        sign = '"type":"state"' if protocol else f'id="turn-{turn.pk}"'
        assert seen.index(sign) < seen.index("New start")
        await chat.command(type="stop", turn=turn.pk)


async def test_words_that_can_not_be_sent_are_brought_by_a_sync(
    conversation, session, upstream, caplog
):
    async with Chat(conversation, session, with_transport=True) as chat:
        end = await chat.say("Hello")
        chat.transport.is_broken = True
        tell(conversation, events.Frame(end["turn"], 1, 0, "One"))
        chat.transport.is_broken = False
        assert "socket failed at a frame" in caplog.text
        again = (await chat.until("end"))[-1]
        assert (again["turn"], again["text"]) == (end["turn"], end["text"])
