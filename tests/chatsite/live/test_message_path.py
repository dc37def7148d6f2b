"""The path of one message, as a reader of the code follows it: its functions, their
files, and how often it changes threads.
"""

import asyncio
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from channels.db import database_sync_to_async

from chatsite.live import watcher
from chatsite.turns import runner
from memory import transcript

from ..sockets import TIMEOUT, Chat

pytestmark = pytest.mark.django_db(transaction=True)

ROOT = Path(__file__).resolve().parents[3]
PRODUCT = (f"{ROOT}/chatsite/", f"{ROOT}/memory/")


class CallTrace:
    """The product's functions that are called in any thread, and the visits that the
    event loop pays to other threads. What is written inside of another function (a
    comprehension, a lambda) is read with that."""

    def __init__(self):
        self.functions, self.visits = set(), []

    @property
    def files(self):
        return {file for file, _ in self.functions}

    def note(self, frame, event, argument):
        code = frame.f_code
        is_named = not code.co_name.startswith("<")
        if event == "call" and is_named and code.co_filename.startswith(PRODUCT):
            self.functions.add((code.co_filename, code.co_qualname))

    async def __aenter__(self):
        loop = asyncio.get_running_loop()
        # Threads that are there already would not be traced.
        loop.set_default_executor(ThreadPoolExecutor())
        threading.setprofile(self.note)
        await database_sync_to_async(sys.setprofile)(self.note)
        sys.setprofile(self.note)
        self._run, loop.run_in_executor = loop.run_in_executor, self._visit
        return self

    def _visit(self, executor, work, *arguments):
        self.visits.append(work)
        return self._run(executor, work, *arguments)

    async def __aexit__(self, *error):
        sys.setprofile(None)
        asyncio.get_running_loop().run_in_executor = self._run
        await database_sync_to_async(sys.setprofile)(None)
        threading.setprofile(None)


async def until_idle():
    while tasks := list(runner._tasks):
        await asyncio.wait(tasks, timeout=TIMEOUT)


@pytest.fixture
def quiet_site(monkeypatch, settings):
    """Switch off the timers of sockets, which belong to no message; the whole reply of
    the demo model comes at once.
    """
    for name in ("LOOK_SECONDS", "SESSION_SECONDS", "RENEW_SECONDS"):
        monkeypatch.setattr(watcher, name, 1000.0)
    settings.DEMO_TOKENS_PER_SECOND = 0.0


@pytest.mark.usefixtures("quiet_site")
@pytest.mark.parametrize(
    ("html", "functions", "files", "visits"),
    [(False, 456, 93, 5), (True, 477, 98, 7)],
)
async def test_a_message_passes_few_functions_and_threads(
    alice, session, html, functions, files, visits
):
    conversation = await database_sync_to_async(transcript.create_conversation)(alice)
    protocol = "" if html else "windowpane.json"
    async with Chat(conversation, session, protocol=protocol) as chat:
        await answer(chat, "The first one imports and connects", html=html)
        # It may end before the page's first sync, whose fragments the imports delay.
        await answer(chat, "The second one syncs", html=html)
        async with CallTrace() as trace:
            await answer(chat, "Hello", html=html)
    assert len(trace.visits) <= visits, trace.visits
    assert len(trace.functions) <= functions
    assert len(trace.files) <= files


async def answer(chat, text, *, html):
    """Send it, and wait until nothing is left to do."""
    if html:
        await chat.command(type="send", client_id=f"id-{len(text)}", text=text)
        await chat.html('data-state="done"')
    else:
        await chat.say(text)
    await until_idle()
