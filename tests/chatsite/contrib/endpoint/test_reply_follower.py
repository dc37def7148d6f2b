"""Answers to clients, as pages and checkpoints follow them."""

import asyncio
from time import monotonic
from types import SimpleNamespace

from chatsite.contrib.endpoint.relay.reply_follower import (
    FollowedReply,
    FollowingStreamer,
)
from chatsite.protocol import events
from chatsite.turns.lifecycle import LeaseStatus, TurnClaim


class Reader(SimpleNamespace):
    reasoning, finish_reason, new = "", None, ""

    def take_new(self):
        new, self.new = self.new, ""
        return new


async def test_a_checkpoint_has_each_word_that_the_client_has(monkeypatch):
    saved = []

    async def save(self, text):
        saved.append(text)
        return LeaseStatus.KEPT

    monkeypatch.setattr(FollowingStreamer, "save", save)
    monkeypatch.setattr(events, "deliver_event", lambda *_: None)
    followed = FollowedReply(reader := Reader())
    claim = TurnClaim(1, "owner", 1, 1, renewed_at=monotonic())
    streamer = FollowingStreamer(claim, followed, asyncio.Event())
    running = asyncio.create_task(streamer.run())
    for word in ("One", " two"):
        # The second comes while reading pauses until the next frame.
        await asyncio.sleep(0.01)
        reader.new = word
        followed.notify_new()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    streamer.save_at = 0.0
    streamer._checkpoint()
    await streamer._save
    assert saved == ["One two"]
    followed.notify_new(is_over=True)
    assert await running is None
    assert streamer.text == "One two"
