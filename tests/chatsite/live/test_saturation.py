"""A socket that gets more events than it can take loses no frame for good: it syncs."""

import pytest

from chatsite.live import consumer, outbox
from chatsite.protocol import events
from memory import transcript

from ..sockets import Chat

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def conversation(alice):
    return transcript.create_conversation(alice)


@pytest.mark.parametrize("protocol", [consumer.JSON_PROTOCOL, ""])
async def test_a_socket_with_a_full_outbox_syncs_by_itself(
    conversation, session, upstream, settings, monkeypatch, protocol
):
    settings.CHAT_MODEL = "ok-slow:60:0.05"
    monkeypatch.setattr(outbox, "MAX_QUEUED", 3)
    async with (
        Chat(conversation, session) as sender,
        Chat(conversation, session, protocol=protocol) as reader,
    ):
        await sender.command(type="send", client_id="c", text="Talk")
        frame = (await sender.until("frame"))[-1]
        syncs = []
        draw = outbox.Outbox._draw

        async def count(socket, drawn, seconds):
            syncs.extend([socket] if socket.state is outbox.State.SYNCING else [])
            await draw(socket, drawn, seconds)

        monkeypatch.setattr(outbox.Outbox, "_draw", count)
        lost = events.State(frame["turn"], "running")
        for _ in range(20):  # all at once: nothing is taken from the outbox meanwhile
            events.deliver_event(conversation.pk, lost)
        end = (await sender.until("end"))[-1]
        assert len(syncs) >= 2  # each of the two
        if protocol:
            assert (await reader.until("end"))[-1] == end
        else:
            html = ""
            while 'data-state="done"' not in html:
                html = await reader.socket.receive_from(timeout=10)
            assert "word60" in html
