"""One entrance: a new site, a user who sends messages, and an attacker.

The attacker, in a process of its own, does nothing and the worst by turns.
"""

import multiprocessing
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

from websockets.exceptions import ConnectionClosed

from tests.clients import Chat, Person
from tests.databases import copy_sqlite
from tests.servers import Site

from .attacker import Attacker, find_link
from .entrances import Entrance
from .figures import Figures

ROUNDS = 2
QUIET_SECONDS, CALM_SECONDS = 2.0, 1.0
# Between two messages: the neighbour stays far below the share of one user.
PAUSE = 0.25
# Before the first message that counts: the first ones fill what a process keeps.
WARM = 3
# No message is waited for longer; one of which nothing came counts as this late.
MOST = 20.0
# What an attacker may need to get ready.
READY_SECONDS = 60.0
# Another address than the attacker's.
ADDRESS = "10.0.0.1"


@dataclass(frozen=True)
class Place:
    """The data of a site that a client in another process needs."""

    url: str
    socket_url: str
    tls: None = None


class NothingCameError(Exception):
    """The neighbour's message has no answer."""


class Neighbour:
    """Sends short messages and waits for their first words."""

    def __init__(self, site: Site) -> None:
        self.person = Person(site, "neighbour")
        self.person.opener.addheaders.append(("X-Forwarded-For", ADDRESS))
        self.path = self.person.create()
        self.chat: Chat = self.person.chat(self.path).__enter__()

    def first_word(self) -> float:
        started = time.monotonic()
        client_id, turn = uuid.uuid4().hex, None
        self.chat.command(type="send", client_id=client_id, text="hello")
        waited = 0.0
        while True:
            event = self._next(started)
            if event["type"] == "error":
                raise RuntimeError(f"The neighbour was refused: {event}")
            if event["type"] == "ack" and event["client_id"] == client_id:
                turn = event["turn"]
            if turn is None or event.get("turn") != turn:
                continue
            if not waited and (event.get("tail") or event.get("text")):
                waited = time.monotonic() - started
            if event["type"] == "end":
                return waited or time.monotonic() - started

    def _next(self, started: float) -> dict[str, Any]:
        try:
            return self.chat.event(max(0.01, started + MOST - time.monotonic()))
        except (TimeoutError, ConnectionClosed) as error:
            raise NothingCameError from error

    def open_link(self) -> float:
        """Return how long a shared page of this user takes."""
        started = time.monotonic()
        with suppress(HTTPError):
            self.person.get(self.link)
        return time.monotonic() - started

    @cached_property
    def link(self) -> str:
        return find_link(self.person.submit(f"{self.path}share/create/", days="7"))

    def wait_for(self, entrance: Entrance, seconds: float) -> Iterator[float]:
        """Yield the wait of each message, for so many seconds."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                yield self.open_link() if entrance.opens_link else self.first_word()
            except NothingCameError:
                yield MOST
                return
            time.sleep(PAUSE)


def measure(entrance: Entrance, provider_url: str, static: Path) -> Figures:
    """Quiet and attacked by turns; where work is left behind, on a new site each."""
    figures = Figures(entrance.name)
    sites, rounds = (ROUNDS, 1) if entrance.lasts else (1, ROUNDS)
    for _ in range(sites):
        with tempfile.TemporaryDirectory() as folder:
            env = environment(Path(folder), provider_url, static)
            env |= entrance.environment(Path(folder))
            play(entrance, Site(env), figures, rounds)
    return figures


def environment(folder: Path, provider_url: str, static: Path) -> dict[str, str]:
    """Return the environment of a deployed site, behind a proxy."""
    return {
        "DEBUG": "false",
        "SECRET_KEY": "only-for-this-bench-" * 3,
        "ALLOWED_HOSTS": "127.0.0.1",
        "BEHIND_PROXY": "true",
        "DATABASE_URL": copy_sqlite(folder / "site.sqlite3"),
        "STATIC_ROOT": str(static),
        "OPENAI_API_KEY": "sk-bench",
        "OPENAI_BASE_URL": provider_url,
        "CHAT_MODEL": "ok",
        "SUMMARY_MODEL": "ok",
    }


def play(entrance: Entrance, site: Site, figures: Figures, rounds: int) -> None:
    with site, attacking(entrance, Place(site.url, site.socket_url)) as attack:
        neighbour = Neighbour(site)
        if not attack.poll(READY_SECONDS) or attack.recv() != "ready":
            raise RuntimeError(f"The attacker at {entrance.name!r} did not get ready.")
        for _ in range(WARM):
            neighbour.first_word()
        for _ in range(rounds):
            figures.quiet += neighbour.wait_for(entrance, QUIET_SECONDS)
            attack.send(entrance.seconds)
            time.sleep(entrance.lead)
            figures.attacked += neighbour.wait_for(
                entrance, entrance.seconds - entrance.lead
            )
            attack.send("tell")
            if attack.poll(MOST):
                figures.answers += attack.recv()
            time.sleep(CALM_SECONDS)


@contextmanager
def attacking(entrance: Entrance, place: Place) -> Iterator[Connection]:
    """The process of the attacker, and how to speak with it. Its processor time is its
    own: the neighbour must not wait for the attacker's Python."""
    context = multiprocessing.get_context("spawn")
    ours, its = context.Pipe()
    process = context.Process(
        target=run_attack, args=(entrance, place, its), daemon=True
    )
    process.start()
    its.close()
    try:
        yield ours
    finally:
        process.kill()
        process.join()


def run_attack(entrance: Entrance, place: Place, orders: Connection) -> None:
    attacker = Attacker(place, "attacker")
    entrance.prepare(attacker)
    entrance.warm(attacker)
    orders.send("ready")
    while True:
        seconds = orders.recv()
        end = time.monotonic() + seconds
        attacker.answers.clear()
        for hand in range(entrance.hands):
            values = (entrance, attacker, hand, end)
            threading.Thread(target=strike, args=values, daemon=True).start()
        orders.recv()
        orders.send(Counter(attacker.answers))


def strike(entrance: Entrance, attacker: Attacker, hand: int, end: float) -> None:
    while time.monotonic() < end:
        try:
            entrance.strike(attacker, hand)
        except (ConnectionClosed, OSError, TimeoutError) as error:
            attacker.note(type(error).__name__)
            time.sleep(0.1)
