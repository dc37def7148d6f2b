"""A topology to break: sites, database, Redis and provider as real processes, people
who look on, and `settle_and_check`, which holds after every fault.
"""

import hashlib
import re
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.error
import uuid
from contextlib import ExitStack, closing, contextmanager, suppress
from copy import copy
from dataclasses import dataclass
from http.client import HTTPConnection
from urllib.parse import urlencode

import psycopg

from tests import plugin
from tests.clients import Person
from tests.databases import MIGRATED, Postgres, copy_sqlite
from tests.fakes import tool_paths
from tests.fakes.upstream import Upstream, tell_story
from tests.patience import PATIENCE, wait_for
from tests.servers import ROOT, Redis, Site
from tests.shown_parts import check_context

from . import auditor
from .viewers import UNFINISHED, Crowd

LEASE = 6.0
SWEEP = 0.5
# On an idle machine a takeover is done two seconds after the lease; where all tests
# run, everything may take longer than it should.
TAKEOVER = LEASE + SWEEP + 6.0
QUICK = {
    "TURN_LEASE_SECONDS": str(LEASE),
    "TURN_SWEEP_SECONDS": str(SWEEP),
    "MODEL_FIRST_TOKEN_TIMEOUT": "10",
    "MODEL_IDLE_TIMEOUT": "10",
    "MODEL_TOTAL_TIMEOUT": "60",
    "LOG_LEVEL": "INFO",
    # For the conversations that choose some.
    "TOOLS": ",".join(tool_paths.PATHS),
    # What is limited per user has its own tests.
    "MESSAGES_PER_MINUTE": "0",
    "PROCESSOR_SHARE_PER_USER": "0",
    "CONVERSATIONS_PER_MINUTE": "0",
}


@dataclass
class Row:
    """A turn as the database has it, with its question and its reply."""

    turn: int
    path: str
    client_id: str
    question: str
    state: str
    attempt: int
    text: str
    error: str
    reply: str | None


ROWS = """
    SELECT t.id, c.uuid, q.client_id, q.text, t.state, t.attempt, t.text, t.error,
           r.text
    FROM chat_turn t JOIN memory_conversation c ON c.id = t.conversation_id
    JOIN memory_message q ON q.id = t.user_message_id
    LEFT JOIN memory_message r ON r.id = t.reply_id
    ORDER BY t.id
"""


CALLS = """
    SELECT name, state FROM chat_toolcall WHERE conversation_id =
        (SELECT max(id) FROM memory_conversation)
    ORDER BY id
"""
OTHERS = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
TRANSACTIONS = """
    SELECT pid FROM pg_stat_activity WHERE datname = current_database()
    AND pid <> pg_backend_pid() AND xact_start IS NOT NULL
"""


class Truth:
    """The database, read beside the site and without its code."""

    def __init__(self, url):
        self.url = url
        self.connection = None

    def query(self, statement):
        if self.url.startswith("sqlite"):
            with closing(self._sqlite()) as connection:
                return connection.execute(statement).fetchall()
        # Tests ask twenty times a second, and break what this rests on as well.
        try:
            return self._postgres().execute(statement).fetchall()
        except psycopg.OperationalError:
            self.close()
            return self._postgres().execute(statement).fetchall()

    def _postgres(self):
        if self.connection is None:
            self.connection = psycopg.connect(self.url, autocommit=True)
        return self.connection

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None

    def _sqlite(self):
        return sqlite3.connect(self.url.removeprefix("sqlite:///"), timeout=20)

    def rows(self):
        return [
            Row(turn, path_of(conversation), *rest)
            for turn, conversation, *rest in self.query(ROWS)
        ]

    def row(self, turn):
        return next(row for row in self.rows() if row.turn == turn)

    def attempts(self, viewers):
        """Return how often each viewer's story was begun."""
        rows = {row.client_id: row for row in self.rows()}
        return [rows[viewer.story].attempt for viewer in viewers]

    def unfinished(self):
        return [row for row in self.rows() if row.state in UNFINISHED]

    def calls(self):
        """The calls of tools in the newest conversation: names and states."""
        return [tuple(row) for row in self.query(CALLS)]

    def count(self, table):
        return self.query(f"SELECT count(*) FROM {table}")[0][0]  # noqa: S608


def path_of(conversation):
    return f"/c/{uuid.UUID(str(conversation))}/"


class Auditor:
    """A process that audits or erases what is in the database whenever it is asked."""

    def __init__(self, env):
        self.process = subprocess.Popen(
            [sys.executable, "-m", auditor.__name__],
            cwd=ROOT,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, command="audit"):
        self.process.stdin.write(f"{command}\n")
        self.process.stdin.flush()
        lines = []
        while (line := self.process.stdout.readline().rstrip()) != auditor.END:
            assert self.process.poll() is None, "the auditor died"
            lines.append(line)
        return "\n".join(lines)

    def stop(self):
        self.process.stdin.close()
        self.process.wait(20 * PATIENCE)
        self.process.stdout.close()


class Topology:
    """N sites over one database, with or without PostgreSQL and Redis."""

    def __init__(self, folder, count=2, *, servers=True, **env):
        self.stack = ExitStack()
        self.postgres = Postgres() if servers else None
        self.redis = Redis() if servers else None
        self.file = folder / "site.sqlite3"
        self.env = {**plugin.ENVIRONMENT, **QUICK, **env}
        self.count = count
        self.sites = []

    def __enter__(self):
        try:
            self._start()
        except BaseException:
            self.show_logs()
            self.stack.close()
            raise
        return self

    def show_logs(self):
        for site in self.sites:
            site.show_log()

    def _start(self):
        self.upstream = self.stack.enter_context(Upstream())
        if self.postgres:
            self.stack.enter_context(self.postgres)
            self.stack.enter_context(self.redis)
            self.url = self.postgres.url(MIGRATED)
            self.env["REDIS_URL"] = self.redis.url
        else:
            self.url = copy_sqlite(self.file)
        self.truth = Truth(self.url)
        self.stack.callback(self.truth.close)
        self.env |= {
            "DATABASE_URL": self.url,
            "OPENAI_BASE_URL": self.env["OPENAI_BASE_URL"] or self.upstream.url,
            "OPENAI_API_KEY": "sk-test",
            "CHAT_MODEL": "ok",
        }
        self.sites = [Site(self.env) for _ in range(self.count)]
        self.env["SITE_ORIGINS"] = ",".join(site.url for site in self.sites)
        for site in self.sites:
            self.stack.callback(site.stop, show_log=False)
        self.start_all()
        self.auditor = Auditor(self.sites[0].environment())
        self.stack.callback(self.auditor.stop)
        self.person = Person(self.sites[0], "ann")
        cookies = (f"{each.name}={each.value}" for each in self.person.cookies)
        self.cookie = "; ".join(cookies)
        self.token = re.search(r"X-CSRFToken[^\w]+(\w+)", self.person.get("/"))[1]

    def __exit__(self, *error):
        self.stack.__exit__(*error)

    def start_all(self):
        """Every process that a test has killed, frozen or stopped runs again."""
        for server in (self.postgres, self.redis, *self.sites):
            if server and server.is_running:
                server.send(signal.SIGCONT)
        for server in (self.postgres, self.redis):
            if server:
                server.start()
        for site in self.sites:
            site.launch()
        for site in self.sites:
            site.wait_until_ready()

    def crowd(self):
        return Crowd(self.cookie)

    def create(self, preset="layered", site=None):
        """A new conversation, in one request."""
        site = site or self.sites[0]
        form = {"title": "", "preset": preset, "csrfmiddlewaretoken": self.token}
        headers = {
            "Cookie": self.cookie,
            "Content-Type": "application/x-www-form-urlencoded",
        }
        with closing(HTTPConnection("127.0.0.1", site.port, timeout=20)) as connection:
            connection.request("POST", "/c/", urlencode(form), headers)
            return connection.getresponse().headers["Location"]

    def create_with_tools(self):
        """A new conversation whose model may call all tools of the tests."""
        path = self.create()
        names = ",".join(tool_paths.NAMES)
        self.person.post(f"{path}memory/tools/set/", tools=names)
        return path

    @contextmanager
    def only(self, site):
        """The others stand still and leave everything that is sent to this one."""
        others = [each for each in self.sites if each is not site]
        wait_for(lambda: self._freeze(others), 20, "a moment without transactions")
        try:
            yield
        finally:
            for other in others:
                other.send(signal.SIGCONT)

    def _freeze(self, sites):
        """False: one of them was in the middle of a transaction, and goes on."""
        for site in sites:
            site.send(signal.SIGSTOP)
        for _ in range(5):
            if not self.truth.query(TRANSACTIONS):
                return True
        for site in sites:
            site.send(signal.SIGCONT)
        return False

    def begin_at(self, site, crowd, count, **story):
        """Stories that all run in one site, the one that the test will break."""
        with self.only(site):
            return self.begin_stories(crowd, count, sites=[site], **story)

    def begin_stories(self, crowd, count, *, sites=None, **story):
        """`count` conversations with a long reply each, spread over the sites; all of
        them have shown their first words."""
        sites = sites or self.sites
        viewers = []
        for number in range(count):
            turn = number % len(sites)
            order = [*sites[turn:], *sites[:turn]]
            others = [site for site in self.sites if site not in order]
            viewers.append(crowd.open([*order, *others], self.create(site=order[0])))
        for viewer in viewers:
            viewer.story = viewer.send(story_text(**story))
        for viewer in viewers:
            viewer.wait_streaming(viewer.story)
        return viewers

    def cut_connections(self):
        """End every connection of the sites to PostgreSQL; how many there were."""
        return len(self.truth.query(OTHERS))

    def settle_and_check(self, viewers, *, seconds=40.0):
        """Check the invariants after a fault: turns end, screens and database agree."""
        started = time.monotonic()
        sent = lambda: not any(viewer.outbox for viewer in viewers)  # noqa: E731
        wait_for(sent, seconds, "every message to be acknowledged")
        wait_for(lambda: not self.truth.unfinished(), seconds, "every turn to end")
        settled = time.monotonic() - started
        rows = {row.client_id: row for row in self.truth.rows()}
        check_questions(self.truth, viewers)
        for viewer in viewers:
            for client_id in viewer.texts:
                check_screen(viewer, client_id, rows)
        for path in {viewer.path for viewer in viewers}:
            self.check_contexts(path)
        found = self.auditor.run()
        assert found == "clean", found
        return settled

    def check_evidence(self):
        """Check the evidence of each conversation and reply; return how many files."""
        *wrong, count = self.auditor.run("prove").splitlines()
        files, _, word = count.partition(" ")
        assert [*wrong, word] == ["files"], [*wrong, count]
        assert int(files), "no file of evidence was checked"
        return int(files)

    def check_contexts(self, path):
        """The parts of every request sum up, and the provider received its body."""
        received = {
            hashlib.sha256(each.raw).hexdigest() for each in self.upstream.calls
        }
        person = copy(self.person)
        # The first site may be the one that was killed.
        person.site = next(site for site in self.sites if site.is_running)
        check_context(person.get_json(f"{path}context.json"))
        for row in person.get_json(f"{path}transcript.json")["messages"]:
            if row["role"] == "assistant" and row["state"] not in UNFINISHED:
                with suppress(urllib.error.HTTPError):
                    query = f"context.json?reply={row['seq']}"
                    check_context(person.get_json(f"{path}{query}"), received)


CATCH_UP = 15.0
QUESTIONS = """
    SELECT text, count(*) FROM memory_message WHERE role = 'user' GROUP BY text
"""


def check_questions(truth, viewers):
    """Check that each sent message is stored exactly once.

    All messages of these tests differ.
    """
    counts = dict(truth.query(QUESTIONS))
    sent = {text for viewer in viewers for text in viewer.texts.values()}
    assert {text: counts.get(text) for text in sent} == dict.fromkeys(sent, 1)


def check_screen(viewer, client_id, rows):
    """One message: it is there once, word for word; its reply is the same on the
    screen, in the database and, as far as it goes, at the provider."""
    end = viewer.wait_end(client_id, CATCH_UP)
    row = rows[client_id]
    assert row.question == viewer.texts[client_id]
    assert row.path == viewer.path
    assert (end["text"], end["state"]) == (row.text, row.state)
    assert (row.reply or "") == row.text
    reply = viewer.reply_to(client_id)
    if reply.attempt == row.attempt:
        streamed = reply.streamed
        if row.state == "interrupted":
            # What came after the last checkpoint is lost with the last process.
            streamed = streamed[: len(row.text)]
        assert row.text.startswith(streamed)
    if expected := story_of(row.question):
        if row.state == "done":
            assert row.text == expected
        else:
            assert expected.startswith(row.text)


def story_text(words=80, paces=(0.1, 0.03), seed=None):
    """A message that is answered with a story of its own, a word every 0.1 s; but
    quicker by the process that takes over, when it is asked for again."""
    story = f"story:{seed or uuid.uuid4().hex[:6]}:{words}"
    return "mode=" + "|".join(f"{story}:{pace}" for pace in paces)


def story_of(question):
    mode, *args = question.removeprefix("mode=").split(":")
    return tell_story(args[0], args[1]) if mode == "story" else ""
