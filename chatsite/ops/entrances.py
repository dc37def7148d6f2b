"""The entrances of the site and the limits of each of them.

These are the queue in which its requests wait for a slot, the size of a body, and the
code that keeps the pace, counts tokens and records who reads. A path without an
entrance of its own is a page of a signed-in user.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from django.conf import settings
from django.http import parse_cookie

from chatsite.accounts.sessions import user_of

MEGABYTE = 1024 * 1024
# Bytes of a body before its sender is looked up: enough for a form to log in, also with
# the answer of an identity provider.
STRANGER_BYTES = 256 * 1024

Headers = list[tuple[bytes, bytes]]
Application = Callable[[dict[str, Any], Any, Any], Awaitable[None]]

SHARE = "chatsite.ops.processor_time.ProcessorTimeMiddleware"
TURNS = "chatsite.turns.limits.admit_turn"
NO_MODEL = "none: no model is asked"
NO_TEXT = "none: nothing that people wrote is shown"
OWN_TEXT = "none: people read only what is their own"


class Slot(Enum):
    """The queue in which a request waits.

    See load.py; the endpoint counts requests with keys, the watcher counts sockets.
    """

    SESSION = "a quarter of the requests at once, for each session"
    LINK = "a quarter, for all links; for each link half of that"
    PASSWORD = "a quarter, for all who log in or sign up"  # noqa: S105
    KEY = "the requests at once of one user, and of a process"
    SOCKET = "the sockets of one user"
    FREE = "none: monitors must be answered when everything else waits"


def read_session_key(headers: Headers) -> str:
    """Return the session that a request names; "" without one. Nothing is looked up."""
    sent = b"; ".join(value for name, value in headers if name == b"cookie")
    return parse_cookie(sent.decode("latin-1")).get(settings.SESSION_COOKIE_NAME, "")


def find_user_id(headers: Headers) -> int | None:
    """Return the user whose session a request names; None: it has no user."""
    key = read_session_key(headers)
    return user_of(key).pk if key else None


def form_bytes() -> int:
    """Return the size of the largest form that Django reads."""
    return settings.DATA_UPLOAD_MAX_MEMORY_SIZE or MEGABYTE


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrance:
    """The requests whose paths begin with one of `starts`.

    `pace`, `tokens` and `access_log` name the code that does it, or say why none has
    to.
    """

    starts: tuple[str, ...]
    slot: Slot = Slot.SESSION
    pace: str = SHARE
    tokens: str = NO_MODEL
    access_log: str = OWN_TEXT
    max_bytes: Callable[[], int] = form_bytes
    # Reads the database: the user who sends a large body; None: a stranger.
    find_sender: Callable[[Headers], int | None] = find_user_id
    # An ASGI application that answers without Django's request and its thread. It
    # answers errors itself and reads no session.
    answer: Application | None = None


PAGES = Entrance(starts=("/",), tokens=TURNS)
# Apps add theirs.
entrances = [
    Entrance(
        starts=("/accounts/", "/admin/login/"),
        slot=Slot.PASSWORD,
        pace="axes.middleware.AxesMiddleware",
        access_log=NO_TEXT,
    ),
    Entrance(
        starts=("/admin/",),
        tokens="chatsite.turns.limits.admit_spending",
        access_log="chatsite.review.access_log.record_access",
    ),
    Entrance(
        starts=("/healthz", "/readyz", "/metrics"),
        slot=Slot.FREE,
        pace="none: monitors ask often, and little is done",
        access_log=NO_TEXT,
    ),
    Entrance(
        starts=("/ws/",),
        slot=Slot.SOCKET,
        pace="chatsite.live.fair_share.FairShare.take_message",
        tokens=TURNS,
    ),
    Entrance(starts=(settings.STATIC_URL, "/language/", "/theme/"), access_log=NO_TEXT),
]


def find_entrance(path: str) -> Entrance:
    """Return the entrance with the longest beginning of this path."""
    found = [
        (len(start), entrance)
        for entrance in entrances
        for start in entrance.starts
        if path.startswith(start)
    ]
    return max(found, key=lambda each: each[0], default=(0, PAGES))[1]


def list_starts(slot: Slot) -> tuple[str, ...]:
    return tuple(s for each in entrances if each.slot is slot for s in each.starts)
