"""Refusals that ask a user to wait, remembered by this process for a moment.

So the further messages of a flood cost no transaction and no other user's time.
"""

from time import monotonic

from django.utils.translation import get_language
from django.utils.translation import gettext as _

from chatsite.protocol import events
from chatsite.protocol.errors import CommandError

# Short, because staff may raise a user's limits in the meantime.
MEMORY_SECONDS = 2.0
UNAVAILABLE_SECONDS = 2.0
KINDS = ("rate_limited", "quota", "queue_full")

# By user and language: each browser is refused in its own words.
_refused: dict[tuple[int, str | None], tuple[float, CommandError]] = {}


def note_refusal(user_id: int, error: CommandError) -> None:
    if error.code in KINDS:
        _refused[user_id, get_language()] = (monotonic(), error)


def find_refusal(user_id: int) -> CommandError | None:
    """Return the refusal that still holds, with the rest of its wait, or None."""
    key = user_id, get_language()
    if key not in _refused:
        return None
    since, error = _refused[key]
    passed = monotonic() - since
    if passed >= min(MEMORY_SECONDS, error.retry_after or 0.0):
        _refused.pop(key, None)
        return None
    wait = round((error.retry_after or 0.0) - passed, 1)
    return CommandError(error.code, error.detail, retry_after=max(wait, 0.1))


def make_unavailable_error(command: events.Command) -> events.Error:
    """Return the error for a command that may be sent again: the database is away."""
    known = events.client_id_of({"client_id": getattr(command, "client_id", None)})
    return events.Error(
        "unavailable",
        _("The database isn't responding right now. Nothing is lost; try again."),
        known,
        UNAVAILABLE_SECONDS,
    )
