"""The servers that are compared, each started with one process and its own database."""

import json
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.databases import Postgres, copy_sqlite
from tests.servers import ROOT, Redis, Server, Site

from . import clients
from .clients import Seat

CHAINLIT = ROOT / ".venv-chainlit" / "bin" / "chainlit"
APP = Path(__file__).parent / "chainlit_app.py"
# Limits per user are not measured, and a title would be one more reply.
SETTINGS = {
    "DEBUG": "false",
    "SECRET_KEY": "only-for-this-bench-" * 3,
    "ALLOWED_HOSTS": "127.0.0.1",
    "OPENAI_API_KEY": "none",
    "CHAT_MODEL": "bench",
    "TITLES_ENABLED": "false",
    "MESSAGES_PER_MINUTE": "0",
}
MAKE_PEOPLE = """
import json
from django.contrib.auth import get_user_model, login
from django.contrib.sessions.backends.db import SessionStore
from django.http import HttpRequest
from django.conf import settings
from bench.long_conversation import make
User = get_user_model()
seats = []
for number in range({count}):
    user = User.objects.create_user(f"person{{User.objects.count()}}")
    request = HttpRequest()
    request.session = SessionStore()
    login(request, user, "django.contrib.auth.backends.ModelBackend")
    request.session.save()
    conversation = make(user, {messages}, title="bench")
    seats.append([settings.SESSION_COOKIE_NAME, request.session.session_key,
                  str(conversation.uuid)])
print(json.dumps(seats))
"""


@dataclass
class Contestant:
    """A running server: where people sit, and which processes work for them."""

    name: str
    person: type[clients.Person]
    server: Server
    helpers: list[Server] = field(default_factory=list)
    messages: int = 0

    def seats(self, count: int) -> list[Seat]:
        if isinstance(self.server, Site):
            return self._make_people(count)
        path = "/ws/socket.io/?EIO=4&transport=websocket"
        path = path if isinstance(self.server, Chainlit) else "/"
        return [Seat(f"ws://127.0.0.1:{self.server.port}{path}")] * count

    def _make_people(self, count: int) -> list[Seat]:
        code = MAKE_PEOPLE.format(count=count, messages=self.messages)
        made = json.loads(self.server.manage("shell", "-v", "0", "-c", code))
        return [
            Seat(
                f"{self.server.socket_url}/ws/c/{uuid}/",
                {"Cookie": f"{cookie}={key}", "Origin": self.server.url},
            )
            for cookie, key, uuid in made
        ]

    def cpu_seconds(self) -> float:
        """Return the processor seconds that all its processes have used so far."""
        found = [self.server, *self.helpers]
        return sum(cpu_of_tree(each.process.pid) for each in found)


def cpu_of_tree(pid: int) -> float:
    """Processor time of a process and of what it has started."""
    ticks = 0
    for each in [pid, *_descendants(pid)]:
        try:
            fields = Path(f"/proc/{each}/stat").read_text().rsplit(") ", 1)[1].split()
        except OSError:
            continue  # it has ended; its parent has its time
        ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _descendants(pid: int) -> Iterator[int]:
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, path.read_text().split()):
            yield child
            yield from _descendants(child)


def listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


class Upstream(Server):
    name = "upstream"

    def __init__(self, words: int) -> None:
        super().__init__()
        self.words = words

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def command(self) -> list[str]:
        module = "bench.streaming.upstream"
        return [sys.executable, "-m", module, str(self.port), str(self.words)]

    def is_ready(self) -> bool:
        return listens(self.port)


class Bare(Server):
    name = "bare"

    def __init__(self, mode: str, upstream_url: str) -> None:
        super().__init__()
        self.mode, self.upstream_url = mode, upstream_url

    def environment(self) -> dict[str, str]:
        own = {"MODE": self.mode, "OPENAI_BASE_URL": self.upstream_url}
        return {**os.environ, **own}

    def command(self) -> list[str]:
        address = ["--verbosity", "0", "-b", "127.0.0.1", "-p", str(self.port)]
        application = "bench.streaming.bare:application"
        return [sys.executable, "-m", "daphne", *address, application]

    def is_ready(self) -> bool:
        return listens(self.port)


class Chainlit(Server):
    name = "chainlit"

    def __init__(self, upstream_url: str) -> None:
        super().__init__()
        self.upstream_url = upstream_url

    def environment(self) -> dict[str, str]:
        own = {
            "OPENAI_BASE_URL": self.upstream_url,
            "CHAINLIT_APP_ROOT": str(self.folder),
            "DO_NOT_TRACK": "true",
        }
        return {**os.environ, **own}

    def command(self) -> list[str]:
        options = ["--headless", "--host", "127.0.0.1", "--port", str(self.port)]
        return [str(CHAINLIT), "run", str(APP), *options]

    def is_ready(self) -> bool:
        return listens(self.port)


@contextmanager
def windowpane(
    upstream_url: str, database: str, messages: int
) -> Iterator[tuple[Contestant, Contestant]]:
    """The site for JSON clients and for pages, on "sqlite" or on "postgresql"."""
    with ExitStack() as stack:
        env = {**SETTINGS, "OPENAI_BASE_URL": upstream_url}
        helpers: list[Server] = []
        if database == "postgresql":
            postgres, redis = (
                stack.enter_context(Postgres()),
                stack.enter_context(Redis()),
            )
            helpers = [postgres, redis]
            env["DATABASE_URL"] = stack.enter_context(postgres.database())
            env["REDIS_URL"] = redis.url
        site = Site(env)
        env["STATIC_ROOT"] = str(site.folder / "static")
        if database == "sqlite":
            env["DATABASE_URL"] = copy_sqlite(site.folder / "site.sqlite3")
        else:
            site.manage("migrate", "--verbosity", "0")
        stack.enter_context(site)
        label = {"sqlite": "SQLite", "postgresql": "PostgreSQL + Redis"}[database]
        yield (
            Contestant(
                f"Windowpane, JSON, {label}",
                clients.JsonPerson,
                site,
                helpers,
                messages,
            ),
            Contestant(
                f"Windowpane, HTML, {label}",
                clients.HtmlPerson,
                site,
                helpers,
                messages,
            ),
        )


@contextmanager
def all_of_them(
    upstream_url: str, names: set[str], messages: int = 10
) -> Iterator[list[Contestant]]:
    """Start those that were asked for; only one at a time has work.

    Each of the site's conversations begins with so many messages.
    """
    with ExitStack() as stack:
        found = []
        if "raw" in names:
            server = stack.enter_context(Bare("raw", upstream_url))
            found.append(Contestant("Channels, raw SSE", clients.BarePerson, server))
        if "langchain" in names:
            server = stack.enter_context(Bare("langchain", upstream_url))
            found.append(Contestant("Channels, ChatOpenAI", clients.BarePerson, server))
        if "chainlit" in names:
            if not CHAINLIT.exists():
                raise SystemExit(
                    f"{CHAINLIT.parent.parent.name} is missing: scripts/bench.sh "
                    "makes it, or leave chainlit out with --only"
                )
            server = stack.enter_context(Chainlit(upstream_url))
            found.append(Contestant("Chainlit", clients.ChainlitPerson, server))
        for database in ("sqlite", "postgresql"):
            if database in names:
                found += stack.enter_context(
                    windowpane(upstream_url, database, messages)
                )
        yield found
