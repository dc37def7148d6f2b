"""The channel layer as this site uses it: it carries hints, which may come late or
never. No call here fails or holds up its caller for long; what was not told is read
from the database.
"""

import asyncio
import logging
import uuid
from collections.abc import Coroutine
from time import monotonic
from typing import Any

from channels.exceptions import ChannelFull
from channels.layers import get_channel_layer
from channels_redis.pubsub import RedisPubSubChannelLayer
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from chatsite import metrics

logger = logging.getLogger(__name__)

CALL_SECONDS = 1.0
# How long a layer that failed is left alone before one call tries it again.
PAUSE_SECONDS = 5.0


class PubSubLayer(RedisPubSubChannelLayer):
    """Sockets open without Redis too: they are only ever told things as members of a
    group, so a channel of their own need not be known outside this process."""

    def __init__(self, url: str) -> None:
        host = {
            "address": url,
            # redis-py 8 ends idle reads after 5 s unless told otherwise.
            "socket_timeout": 15,
            "socket_connect_timeout": 2,
            "socket_keepalive": True,
            # One more try, on a new connection; a hint is not worth more.
            "retry": Retry(NoBackoff(), 1),
        }
        super().__init__(hosts=[host])

    async def new_channel(self, prefix: str = "specific.") -> str:
        layer = self._get_layer()
        channel = f"{layer.prefix}{prefix}{uuid.uuid4().hex}"
        layer.channels[channel] = asyncio.Queue()
        return channel


class _Health:
    """Whether the layer answered last time, and when to ask it again."""

    def __init__(self) -> None:
        self.ok = True
        self._next_try = 0.0

    def may_try(self) -> bool:
        if self.ok:
            return True
        if monotonic() < self._next_try:
            return False
        # The others stay away while this one finds out.
        self._next_try = monotonic() + PAUSE_SECONDS
        return True

    def note(self, *, ok: bool) -> None:
        self.ok = ok
        self._next_try = 0.0 if ok else monotonic() + PAUSE_SECONDS


health = _Health()


async def send(group: str, message: dict[str, Any]) -> bool:
    return health.may_try() and await _call("group_send", group, message)


async def join(group: str, channel: str) -> bool:
    """False: try again later; until then nothing is heard of the group."""
    return health.may_try() and await _call("group_add", group, channel)


async def leave(group: str, channel: str) -> bool:
    # Tried in any case: the part of it that is in this process has to happen.
    return await _call("group_discard", group, channel)


async def _call(method: str, *args: Any) -> bool:
    try:
        await _bounded(getattr(get_channel_layer(), method)(*args))
    except ChannelFull:
        logger.warning("layer: %s found a channel full", method)
        return False
    except (OSError, RedisError) as error:
        metrics.LAYER_FAILURES.inc()
        if health.ok:
            logger.warning("layer: %s failed: %s", method, type(error).__name__)
        health.note(ok=False)
        return False
    if not health.ok:
        logger.warning("layer: answers again")
    health.note(ok=True)
    return True


# Strong references to calls that are still being cancelled.
_given_up: set[asyncio.Task[Any]] = set()


async def _bounded(call: Coroutine[Any, Any, Any]) -> None:
    """Raises TimeoutError. A cancelled call may still wait for a lock or for its
    connection to close, which asyncio.timeout() would wait for too."""
    task = asyncio.create_task(call)
    try:
        done, _ = await asyncio.wait({task}, timeout=CALL_SECONDS)
        if not done:
            raise TimeoutError
        task.result()
    finally:
        give_up(task)


def give_up(task: asyncio.Task[Any]) -> None:
    """Cancel what waits for the layer, and do not wait until it has noticed."""
    task.cancel()
    _given_up.add(task)
    task.add_done_callback(_forget)


def _forget(task: asyncio.Task[Any]) -> None:
    _given_up.discard(task)
    if not task.cancelled():
        task.exception()
