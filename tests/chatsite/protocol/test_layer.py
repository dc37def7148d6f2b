"""The channel layer over a real Redis that comes and goes: it may only slow things."""

import asyncio
import signal

import pytest
from channels.db import database_sync_to_async
from channels.layers import channel_layers, get_channel_layer
from redis import asyncio as aioredis

from chatsite.live import watcher
from chatsite.protocol import layer
from memory import transcript
from tests.patience import within
from tests.servers import Redis

from ..sockets import TIMEOUT, Chat

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def redis():
    with Redis() as server:
        yield server


@pytest.fixture(autouse=True)
async def redis_layer(redis, settings, monkeypatch):
    monkeypatch.setattr(layer, "PAUSE_SECONDS", 0.5)
    monkeypatch.setattr(layer, "health", layer._Health())
    monkeypatch.setattr(layer, "_members", {})
    config = {"BACKEND": "chatsite.protocol.pubsub.PubSubLayer", "CONFIG": {}}
    settings.CHANNEL_LAYERS = {"default": {**config, "CONFIG": {"url": redis.url}}}
    yield
    redis.send(signal.SIGCONT)
    await get_channel_layer().flush()
    channel_layers.backends.clear()


@pytest.fixture
def conversation(alice):
    return transcript.create_conversation(alice)


async def send_from_elsewhere(group, message):
    """Send to the group as another process does."""
    envelope = {"group": group, "from": "another process", **message}
    return await layer._call_layer("group_send", group, envelope)


async def listener(group):
    """A queue of what other processes tell the group."""
    heard = asyncio.Queue()
    assert await layer.join_group(group, heard.put_nowait)
    # Redis knows a subscription a moment after it was asked for.
    while heard.empty():
        await send_from_elsewhere(group, {"type": "first"})
        await asyncio.sleep(0.05)
    assert heard.get_nowait() == {"type": "first"}
    return heard


async def receive_news(heard):
    """The next message but those that listener() has sent."""
    async with asyncio.timeout(TIMEOUT):
        while await heard.get() != {"type": "news"}:
            pass


async def until(act):
    async with asyncio.timeout(TIMEOUT):
        while not await act():  # noqa: ASYNC110 - another process acts
            await asyncio.sleep(0.1)


async def test_a_stopped_redis_fails_no_caller_and_comes_back(redis):
    heard = await listener("g")
    redis.kill()
    with within(2.5):
        assert not any(
            [await layer.spread_to_processes("g", {"type": "x"}) for _ in range(50)]
        )
        assert not await layer.join_group("h", heard.put_nowait)
    redis.start()
    while heard.empty() or heard.get_nowait() != {"type": "again"}:
        await send_from_elsewhere("g", {"type": "again"})
        await asyncio.sleep(0.1)
    await until(lambda: layer.join_group("h", heard.put_nowait))


async def test_each_member_here_receives_a_message_once(redis):
    one, two = await listener("g"), await listener("g")
    layer.deliver_here("g", {"type": "news"})
    assert await layer.spread_to_processes("g", {"type": "news"})
    await send_from_elsewhere("g", {"type": "end"})
    for heard in (one, two):
        kinds = []
        while "end" not in kinds:
            kinds.append((await heard.get())["type"])
        assert kinds.count("news") == 1


async def test_offer_counts_the_other_processes_that_receive(redis):
    assert await layer.offer_to_processes("g", {"type": "news"}) == 0
    await listener("g")
    assert await layer.offer_to_processes("g", {"type": "news"}) == 0
    async with aioredis.from_url(redis.url) as other:
        pubsub = other.pubsub()
        await pubsub.subscribe("asgi__group__g")
        await until(lambda: layer.offer_to_processes("g", {"type": "news"}))
        assert await layer.offer_to_processes("g", {"type": "news"}) == 1
        await pubsub.aclose()


async def test_messages_of_one_moment_share_a_connection(redis):
    """Fifty replies send their frames in one moment."""
    other = aioredis.from_url(redis.url)
    async with other, other.pubsub() as pubsub:
        await pubsub.subscribe("asgi__group__g")
        await layer.offer_to_processes("g", {"type": "first"})
        known = (await other.info("stats"))["total_connections_received"]
        offers = [layer.offer_to_processes("g", {"type": "news"}) for _ in range(50)]
        offers += [layer.offer_to_processes("h", {"type": "news"})]
        assert await asyncio.gather(*offers) == [1] * 50 + [0]
        stats = await other.info("stats")
        assert stats["total_connections_received"] == known


async def test_group_is_offered_to_processes_that_join_it_within_a_second(redis):
    await listener("g")
    assert layer.may_be_heard("g")
    layer.note_unheard("g")
    layer.note_unheard("another")
    for _ in range(3):
        assert not layer.may_be_heard("g")
        await asyncio.sleep(layer.ASK_SECONDS / 2)
    async with aioredis.from_url(redis.url) as other:
        pubsub = other.pubsub()
        await pubsub.subscribe("asgi__group__g")
        with within(layer.ASK_SECONDS + 0.5):
            while not layer.may_be_heard("g"):  # noqa: ASYNC110 - another process acts
                await asyncio.sleep(0.02)
        await pubsub.aclose()


async def test_lost_redis_leaves_no_group_unheard(redis):
    await listener("g")
    layer.note_unheard("g")
    redis.kill()
    assert not layer.may_be_heard("g")
    async with asyncio.timeout(TIMEOUT):
        while not layer.may_be_heard("g"):  # noqa: ASYNC110 - the question fails
            await asyncio.sleep(0.02)


async def test_sent_message_is_readable_by_the_release_before(redis):
    """The consumer of that release ends at a message without a type; it takes an
    unknown event for the hint to read the database.
    """
    event = {"type": "something new"}
    async with aioredis.from_url(redis.url) as other:
        pubsub = other.pubsub(ignore_subscribe_messages=True)
        await pubsub.subscribe("asgi__group__g")
        told = {"type": "chat.event", "event": event}
        await until(lambda: layer.offer_to_processes("g", told))
        async with asyncio.timeout(TIMEOUT):
            sent = await anext(pubsub.listen())
        heard = get_channel_layer().deserialize(sent["data"])
        await pubsub.aclose()
    assert (heard["type"], heard["event"]) == ("chat.event", event)


async def test_message_of_another_version_is_skipped_and_logged_once(caplog):
    heard = await listener("g")
    for envelope in ({"type": "chat.event", "event": {}}, {"group": "g"}, {}):
        assert await layer._call_layer("group_send", "g", envelope)
    await send_from_elsewhere("g", {"type": "news"})
    await receive_news(heard)
    said = [r.getMessage() for r in caplog.records if r.name == layer.__name__]
    assert said == ["layer: skipped what another version of the site says"]


async def test_a_reader_that_fails_is_noted_and_starts_again(monkeypatch, caplog):
    monkeypatch.setattr(layer, "RESTART_SECONDS", 0.01)
    heard = await listener("g")

    def fail(message):
        heard.put_nowait(message)
        raise RuntimeError("a bug")

    assert await layer.join_group("g", fail)
    for _ in range(3):
        await send_from_elsewhere("g", {"type": "news"})
    for _ in range(6):
        await receive_news(heard)
    await layer.leave_group("g", fail)
    assert "layer: the reader failed" in caplog.text


async def test_a_reader_that_was_cancelled_is_replaced():
    await listener("g")
    loop = asyncio.get_running_loop()
    layer._readers[loop].task.cancel()
    await asyncio.sleep(0)
    assert (await listener("h")).empty()
    assert not layer._readers[loop].task.done()


async def test_call_that_cannot_be_cancelled_holds_no_caller_up():
    async def stubborn():
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(60)

    with within(layer.CALL_SECONDS + 1), pytest.raises(TimeoutError):
        await layer._limit_time(stubborn())
    for task in layer._given_up.copy():
        task.cancel()


async def test_a_frozen_redis_holds_no_caller_up(redis):
    await listener("g")
    redis.send(signal.SIGSTOP)
    calls = (layer.spread_to_processes("g", {"type": "x"}) for _ in range(20))
    with within(2 * layer.CALL_SECONDS):
        assert not any(await asyncio.gather(*calls))
    with within(0.1):
        assert not await layer.spread_to_processes("g", {"type": "x"})
    redis.send(signal.SIGCONT)
    await until(lambda: layer.spread_to_processes("g", {"type": "x"}))


async def test_a_connection_that_goes_before_it_is_written_to_fails_no_caller(
    monkeypatch, caplog
):
    heard = await listener("g")
    (shard,) = get_channel_layer()._shards
    connection = shard._pubsub.connection
    write = connection._send_packed_command

    async def lose(command):
        # As the reader does when Redis is gone; redis-py looks only before this task.
        await connection.disconnect(nowait=True)
        await write(command)

    with monkeypatch.context() as patch:
        patch.setattr(connection, "_send_packed_command", lose)
        await layer.leave_group("g", heard.put_nowait)
    assert "layer: group_discard failed: AttributeError" in caplog.text
    await until(lambda: layer.spread_to_processes("g", {"type": "x"}))
    assert (await listener("g")).empty()


async def test_failure_of_the_layer_is_logged_once(redis, caplog):
    redis.kill()
    for _ in range(3):
        await layer.spread_to_processes("g", {"type": "x"})
    redis.start()
    await until(lambda: layer.spread_to_processes("g", {"type": "x"}))
    said = [r.getMessage() for r in caplog.records if r.name == layer.__name__]
    assert said == ["layer: group_send failed: ConnectionError", "layer: answers again"]


async def test_pages_follow_without_a_layer(
    quick_watcher, redis, conversation, session, upstream
):
    redis.kill()
    async with Chat(conversation, session) as one, Chat(conversation, session) as two:
        await one.command(type="send", client_id="c", text="Anybody there?")
        ack = (await one.until("ack"))[-1]
        ends = [(await each.until("end", turn=ack["turn"]))[-1] for each in (one, two)]
    assert [end["state"] for end in ends] == ["done", "done"]
    assert ends[0]["text"] == ends[1]["text"] != ""


async def test_the_senders_page_shows_its_message_at_once(redis, conversation, session):
    redis.kill()
    async with Chat(conversation, session, protocol="") as page:
        await page.socket.receive_from(timeout=TIMEOUT)
        await page.command(type="send", client_id="c", text="Anybody there?")
        html = ""
        with within(watcher.SILENCE_SECONDS):
            while "Anybody there?" not in html:
                html = await page.socket.receive_from(timeout=TIMEOUT)


async def test_socket_that_opened_without_a_layer_joins_it_later(
    redis, conversation, session, upstream, settings
):
    settings.CHAT_MODEL = "ok-slow:20:0.05"
    redis.kill()
    async with Chat(conversation, session) as chat:
        redis.start()
        here = watcher.current_watcher()
        await until(lambda: asyncio.sleep(0, all(s.joined for s in here._sockets)))
        await chat.command(type="send", client_id="c", text="And now?")
        seen = await chat.until("end")
    # Frames only ever come through the layer; a sync sends one at most.
    assert sum(event["type"] == "frame" for event in seen) > 3


async def test_a_stop_works_without_a_layer(
    redis, conversation, session, upstream, settings
):
    settings.CHAT_MODEL = "ok-slow:500:0.02"
    async with Chat(conversation, session) as chat:
        await chat.command(type="send", client_id="c", text="Talk")
        frame = (await chat.until("frame"))[-1]
        redis.kill()
        await chat.command(type="stop", turn=frame["turn"])
        end = (await chat.until("end"))[-1]
    assert end["state"] == "stopped"
    turn = await database_sync_to_async(conversation.turns.get)()
    assert (turn.state, turn.text) == ("stopped", end["text"])
