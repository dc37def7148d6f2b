"""The sockets of one user take turns, and no more than their share of the thread."""

import asyncio
import json
import time

import pytest

from chatsite.fair_queue import work_owner
from chatsite.live import fair_share, pieces, socket_client
from chatsite.turns import attempt
from memory import transcript

from ..sockets import TIMEOUT, Chat

ME, OTHER = 1, 2


def work(seconds):
    """Keep the processor busy for so long."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


async def test_other_users_wait_for_one_piece_of_work_at_most():
    mine = [
        asyncio.create_task(fair_share.find_fair_share(ME).run(work, 0.05))
        for _ in range(20)
    ]
    await asyncio.sleep(0.06)
    await fair_share.find_fair_share(OTHER).run(work, 0.0)
    assert sum(task.done() for task in mine) < 10
    for task in mine:
        task.cancel()


async def test_work_is_known_to_be_this_persons():
    assert await fair_share.find_fair_share(ME).run(work_owner.get) == ME
    # Sessions can be made up: all that open sockets are one.
    assert (
        await fair_share.find_fair_share("one").run(work_owner.get)
        == fair_share.OPENING
    )
    assert (
        await fair_share.find_fair_share("another").run(work_owner.get)
        == fair_share.OPENING
    )


async def test_user_rests_after_using_the_thread_for_long(monkeypatch, settings):
    settings.PROCESSOR_SHARE_PER_USER = 10
    monkeypatch.setattr(fair_share, "BURST_SECONDS", 0.1)
    share = fair_share.find_fair_share(ME)
    started = time.monotonic()
    for _ in range(4):
        await share.run(work, 0.05)
    assert share.is_spent
    assert not fair_share.find_fair_share(OTHER).is_spent
    await share.run(work, 0.0)
    # The tenth of a second that is free, then a tenth of the time.
    assert time.monotonic() - started > (0.2 - 0.1) * 10 - 0.05


async def test_messages_count_though_they_need_no_work(monkeypatch):
    monkeypatch.setattr(fair_share, "BURST_SECONDS", 0.01)
    started = time.monotonic()
    for _ in range(50):
        await fair_share.find_fair_share(ME).take_message()
    assert time.monotonic() - started > 0.1


async def test_wait_for_a_lock_does_not_count_against_the_share(monkeypatch):
    monkeypatch.setattr(fair_share, "BURST_SECONDS", 0.05)
    share = fair_share.find_fair_share(ME)
    await share.run(time.sleep, 0.3)
    assert not share.is_spent


async def test_zero_is_no_limit(monkeypatch, settings):
    settings.PROCESSOR_SHARE_PER_USER = 0
    monkeypatch.setattr(fair_share, "BURST_SECONDS", 0.0)
    for _ in range(3):
        await fair_share.find_fair_share(ME).run(work, 0.02)
    assert not fair_share.find_fair_share(ME).is_spent


async def test_shares_of_the_longest_quiet_users_are_forgotten(monkeypatch):
    monkeypatch.setattr(fair_share, "MAX_PEOPLE", 3)
    kept = fair_share.find_fair_share(1)
    for user_id in (2, 3, 1, 4, 1, 5):
        fair_share.find_fair_share(user_id)
    assert fair_share.find_fair_share(1) is kept
    assert len(fair_share._people[asyncio.get_running_loop()]) == 3


@pytest.mark.django_db(transaction=True)
async def test_a_socket_works_for_its_session_and_then_for_its_user(
    alice, session, monkeypatch
):
    keys, left, of = [], [], fair_share.find_fair_share
    monkeypatch.setattr(
        fair_share, "find_fair_share", lambda key: keys.append(key) or of(key)
    )
    leave = socket_client.SocketClient.leave_presence
    monkeypatch.setattr(
        *(socket_client.SocketClient, "leave_presence"),
        lambda client, count: left.append(work_owner.get()) or leave(client, count),
    )
    prepared, prepare = [], attempt.prepare_attempt
    monkeypatch.setattr(
        *(attempt, "prepare_attempt"),
        lambda *args, **values: (
            prepared.append(work_owner.get()) or prepare(*args, **values)
        ),
    )
    conversation = await asyncio.to_thread(transcript.create_conversation, alice)
    async with Chat(conversation, session) as chat:
        await chat.command(type="sync")
        await chat.say("Hello")
    assert keys == [session, alice.pk]
    assert left == prepared == [alice.pk]


@pytest.mark.django_db(transaction=True)
async def test_a_page_is_drawn_beside_the_thread_of_commands(
    alice, session, monkeypatch
):
    drawn, done, draw, run = (
        [],
        [],
        fair_share.FairShare.run_drawing,
        fair_share.FairShare.run,
    )
    monkeypatch.setattr(
        *(fair_share.FairShare, "run_drawing"),
        lambda share, work, *args: drawn.append(work) or draw(share, work, *args),
    )
    monkeypatch.setattr(
        *(fair_share.FairShare, "run"),
        lambda share, work, *args: done.append(work) or run(share, work, *args),
    )
    conversation = await asyncio.to_thread(transcript.create_conversation, alice)
    async with Chat(conversation, session, protocol="") as chat:
        await chat.command(type="send", client_id="c", text="Hello")
        html = ""
        while "Reply complete" not in html:
            html += await chat.socket.receive_from(timeout=TIMEOUT)
    assert set(drawn) == {pieces.draw_slice}
    assert pieces.draw_slice not in done


@pytest.mark.django_db(transaction=True)
class TestSyncs:
    @pytest.fixture
    def syncs(self, monkeypatch):
        """Count how often a page was brought up to date."""
        counted, sync = [], socket_client.JsonView.sync

        def counting(view, client):
            counted.append(client)
            yield []
            time.sleep(0.05)
            yield from sync(view, client)

        monkeypatch.setattr(socket_client.JsonView, "sync", counting)
        return counted

    async def test_waiting_syncs_are_answered_together(self, alice, session, syncs):
        conversation = await asyncio.to_thread(transcript.create_conversation, alice)
        async with Chat(conversation, session) as chat:
            for _ in range(100):
                await chat.command(type="sync")
            assert (await chat.say("Hello"))["state"] == "done"
            await chat.command(type="sync")
            last = json.loads(await chat.socket.receive_from(timeout=TIMEOUT))
            assert last["type"] in (
                *("end", "state", "title", "memory", "frame", "unread"),
            )
        assert 0 < len(syncs) < 10
