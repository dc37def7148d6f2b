"""A process that is asked to end hands its turns over, wherever it was."""

import asyncio

from asgiref.sync import SyncToAsync, sync_to_async

from chatsite.live.backpressure import BoundedServer


async def test_server_hands_over_whatever_the_signal_has_interrupted(monkeypatch):
    """A request that waited for its thread: asgiref takes a second wait in its context
    for a deadlock."""
    server, done = BoundedServer.__new__(BoundedServer), []
    server.ports, server.connections = [], {}

    async def hand_over():
        await sync_to_async(done.append)(True)

    hook = staticmethod(hand_over)
    monkeypatch.setattr(BoundedServer, "hand_over", hook, raising=False)
    token = SyncToAsync.deadlock_context.set(True)
    try:
        ending = server.kill_all_applications()
        await ending.asFuture(asyncio.get_running_loop())
    finally:
        SyncToAsync.deadlock_context.reset(token)
    assert done == [True]
