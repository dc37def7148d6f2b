"""The channel layer between processes: Redis, read without a lock per reply.

A site without REDIS_URL does not import it: Redis's client is 70 modules.
"""

import asyncio
import uuid
from collections.abc import Collection, Sequence
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from channels_redis.pubsub import RedisPubSubChannelLayer
from redis.asyncio.connection import parse_url
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

# The parts of an address that are options of the connection, not its target.
KEPT = ("username", "password", "db")


class PubSubLayer(RedisPubSubChannelLayer):
    """A channel layer with which sockets open without Redis too.

    Sockets receive messages only as members of a group, so a channel of their own need
    not be known outside this process.
    """

    # What a call raises when Redis can't be reached. The last three come from the
    # middle of redis-py and of the event loop: the reader has closed the connection
    # that the call was about to write to
    # (https://github.com/redis/redis-py/issues/4287).
    LOST = (OSError, RedisError, AttributeError, TypeError, RuntimeError)

    def __init__(self, url: str, sentinels: Sequence[str] = ()) -> None:
        host = {
            **(name_primary(url, sentinels) if sentinels else {"address": url}),
            # redis-py 8 ends idle reads after 5 s by default.
            "socket_timeout": 15,
            "socket_connect_timeout": 2,
            "socket_keepalive": True,
            # One more try, on a new connection; a hint is not worth more.
            "retry": Retry(NoBackoff(), 1),
        }
        super().__init__(hosts=[host])
        # The messages of each event loop that the next request publishes: channel,
        # text, and the number of processes that have received it.
        self._waiting: WeakKeyDictionary[
            Any, list[tuple[str, bytes, asyncio.Future[int]]]
        ] = WeakKeyDictionary()
        self._publishing: set[asyncio.Task[None]] = set()

    async def new_channel(self, prefix: str = "specific.") -> str:
        layer = self._get_layer()
        channel = f"{layer.prefix}{prefix}{uuid.uuid4().hex}"
        layer.channels[channel] = asyncio.Queue()
        return channel

    async def group_send(self, group: str, message: dict[str, Any]) -> int:
        """Publish the message; return how many other processes received it.

        All messages of a moment are one request. The layer's own method keeps a lock
        until Redis has answered, so that all replies of a process would stand in one
        queue; and with a connection for each message, fifty that come at once open as
        many, for 2 ms of processor time each.
        """
        layer = self._get_layer()
        name = layer._get_group_channel_name(group)
        loop = asyncio.get_running_loop()
        received: asyncio.Future[int] = loop.create_future()
        waiting = self._waiting.setdefault(layer, [])
        waiting.append((name, self.serialize(message), received))
        if len(waiting) == 1:
            task = loop.create_task(self._publish_waiting(layer))
            self._publishing.add(task)
            task.add_done_callback(self._publishing.discard)
        count = await received
        return count - (name in layer._get_shard(name)._subscribed_to)

    async def _publish_waiting(self, layer: Any) -> None:
        """Publish the messages that wait; each caller gets its count, or the error."""
        waiting = self._waiting.pop(layer)
        [shard] = layer._shards
        shard._ensure_redis()
        request = shard._redis.pipeline(transaction=False)
        for name, text, _ in waiting:
            request.publish(name, text)
        try:
            counts = await request.execute()
        except Exception as error:  # noqa: BLE001 - each caller raises it
            for *_, received in waiting:
                if not received.done():
                    received.set_exception(error)
            return
        for (*_, received), count in zip(waiting, counts, strict=True):
            if not received.done():  # its caller has given up
                received.set_result(count)

    async def find_heard(self, groups: Collection[str]) -> set[str]:
        """Return the groups in which other processes receive messages."""
        layer = self._get_layer()
        [shard] = layer._shards
        shard._ensure_redis()
        names = {layer._get_group_channel_name(group): group for group in groups}
        counts = await shard._redis.pubsub_numsub(*names)
        counted = {name.decode(): count for name, count in counts}
        return {
            names[name]
            for name, count in counted.items()
            if count > (name in shard._subscribed_to)
        }


def name_primary(url: str, sentinels: Sequence[str]) -> dict[str, Any]:
    """Return the options of channels_redis for the primary that the sentinels name.

    The host of `url` is the name under which the sentinels know the primary.
    """
    options = parse_url(url)
    is_secure = options.pop("connection_class", None) is not None
    known = {key: options[key] for key in KEPT if key in options}
    pairs = (each.rpartition(":") for each in sentinels)
    return {
        # Read once more: the name of a host would be in lower case.
        "master_name": urlsplit(url).netloc.rpartition("@")[2].partition(":")[0],
        "sentinels": [(host.strip("[]"), int(port)) for host, _, port in pairs],
        # One that does not answer is passed over.
        "sentinel_kwargs": {"socket_timeout": 1, "socket_connect_timeout": 1},
        "ssl": is_secure,
        **known,
    }
