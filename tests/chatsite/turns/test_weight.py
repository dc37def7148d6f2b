"""Statements of one turn, from Enter until all of its work is done, and those of an
idle process.
"""

import asyncio
import re
from collections import Counter
from operator import truediv

import pytest
from asgiref.sync import async_to_sync
from channels.db import database_sync_to_async
from django.db import connection
from django.db.models.sql.compiler import (
    SQLCompiler,
    SQLInsertCompiler,
    SQLUpdateCompiler,
)

from chatsite.accounts import sessions
from chatsite.live import presence, progress, watcher
from chatsite.turns import lifecycle, limits, runner
from chatsite.turns.models import TURN_LEASE, Turn
from memory import transcript

from ..scenes import submit, talk_in_turns
from ..sockets import TIMEOUT, Chat

pytestmark = pytest.mark.django_db(transaction=True)


class Statements:
    """The statements of the thread that works for turns and sockets."""

    def __init__(self):
        self.found = []

    def __call__(self, execute, sql, params, many, context):
        self.found.append(re.sub(r"\s+", " ", sql))
        return execute(sql, params, many, context)

    def table(self):
        """Return the counts of each kind, for the message of a failure."""
        kinds = Counter(
            re.sub(r"(SELECT|FROM) .*?(FROM \S+).*", r"\1 \2", sql)[:70]
            for sql in self.found
        )
        return "\n".join(f"{count:3} {kind}" for kind, count in kinds.most_common())


async def until_idle():
    while tasks := list(runner._tasks):
        await asyncio.wait(tasks, timeout=TIMEOUT)


@pytest.fixture
def no_watcher(monkeypatch):
    """Switch off the watcher of open pages, which belongs to no turn."""
    for name in ("LOOK_SECONDS", "SESSION_SECONDS", "RENEW_SECONDS"):
        monkeypatch.setattr(watcher, name, 1000.0)


@pytest.fixture
def compiled(monkeypatch):
    """The statements that Django compiles, which takes longer than they do."""
    found = []
    for kind in (SQLCompiler, SQLUpdateCompiler, SQLInsertCompiler):

        def as_sql(self, *args, compile_one=kind.as_sql, **options):
            found.append(f"{type(self).__name__} {self.query.model.__name__}")
            return compile_one(self, *args, **options)

        monkeypatch.setattr(kind, "as_sql", as_sql)
    return found


@pytest.mark.usefixtures("no_watcher")
@pytest.mark.parametrize(("html", "most", "built"), [(False, 27, 0), (True, 32, 0)])
async def test_a_turn_is_few_statements(
    alice, session, upstream, settings, compiled, html, most, built
):
    """A page also reads what it draws: the turn as it begins, and as it ended. Most
    statements were compiled by the turn before (memory/sql.py)."""
    settings.CHAT_MODEL = "ok"
    conversation = await database_sync_to_async(transcript.create_conversation)(alice)
    protocol = "" if html else "windowpane.json"
    async with Chat(conversation, session, protocol=protocol) as chat:
        await answer(chat, "The first one imports and connects", html=html)
        statements = Statements()
        await database_sync_to_async(
            lambda: connection.execute_wrappers.append(statements)
        )()
        compiled.clear()
        await answer(chat, "Hello", html=html)
        assert len(compiled) <= built, Counter(compiled)
        await database_sync_to_async(
            lambda: connection.execute_wrappers.remove(statements)
        )()
    assert len(statements.found) <= most, statements.table()


async def answer(chat, text, *, html):
    """Send it, and wait until nothing is left to do."""
    if html:
        await chat.command(type="send", client_id=f"id-{len(text)}", text=text)
        await chat.html('data-state="done"')
    else:
        await chat.say(text)
    await until_idle()
    # A page that has just opened is synced once more when it has its title.
    while html and not await chat.socket.receive_nothing(0.5):
        await chat.socket.receive_from()


def test_an_idle_process_asks_twice_a_second(alice, session, settings):
    """The process has a page open; each of these is one round of its repeated work."""
    conversation = transcript.create_conversation(alice)
    presence.enter_presence(alice.pk, 1)
    rounds = (
        (async_to_sync(runner.sweep_due_work), settings.TURN_SWEEP_SECONDS),
        (lambda: progress.read_progress({conversation.pk}), watcher.SILENCE_SECONDS),
        (lambda: sessions.find_ended({(session, alice.pk)}), watcher.SESSION_SECONDS),
        (lambda: presence.renew_presence({alice.pk: 1}), watcher.RENEW_SECONDS),
    )
    rounds[0][0]()  # with it what is only looked at every few minutes
    found = [statements_of(work) for work, _ in rounds]
    counts = [len(each.found) for each in found]
    assert counts == [1, 1, 1, 2], "\n\n".join(each.table() for each in found)
    seconds = [seconds for _, seconds in rounds]
    assert sum(map(truediv, counts, seconds)) < 2.001


def statements_of(work):
    statements = Statements()
    with connection.execute_wrapper(statements):
        work()
    return statements


FINISHED = 300


@pytest.mark.database("sqlite")
@pytest.mark.parametrize(
    "look",
    [
        lambda each: progress.read_progress({each.pk}),
        lambda each: list(lifecycle.unfinished(each.pk)),
        lambda each: lifecycle.with_open_from(each.pk),
        lambda each: lifecycle.due(),
        lambda each: limits.may_run(each.turns.order_by("-pk").first()),
        lambda each: limits.next_waiting(each.pk),
        lambda each: runner._make_backlog().find_due(),
    ],
)
def test_finished_turns_are_not_in_the_way(alice, look):
    """Unfinished turns are found by an index, however many others there are; counted in
    the steps of SQLite's machine.
    """
    conversation = transcript.create_conversation(alice)
    talk_in_turns(conversation, "Hello")
    turn = submit(conversation, "And?").turn
    turn.state, turn.lease_until = Turn.State.RUNNING, TURN_LEASE.new_expiry()
    turn.save()
    before = steps_of(look, conversation)
    done = conversation.turns.exclude(pk=turn.pk).get()
    values = {"user_message": done.user_message, "reply_seq": 2, "state": done.state}
    Turn.objects.bulk_create(
        Turn(conversation=conversation, **values) for _ in range(FINISHED)
    )
    assert steps_of(look, conversation) < before + FINISHED


def steps_of(look, conversation):
    steps = 0

    def count():
        nonlocal steps
        steps += 1

    connection.connection.set_progress_handler(count, 1)
    try:
        look(conversation)
    finally:
        connection.connection.set_progress_handler(None, 1)
    return steps
