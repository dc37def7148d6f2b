"""The tools `current_time` and `remind_me`, in the user's time zone."""

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

from django.utils import timezone
from langchain.tools import ToolRuntime
from langchain_core.tools import ToolException, tool

from ..context import CallContext, PendingResult, find_zone

LONGEST = timedelta(days=366)
MAX_CHARS = 1_000
# A reminder still comes so long after its time, if the site was down meanwhile.
GRACE = timedelta(days=30)


@tool(parse_docstring=True)
async def current_time(
    runtime: ToolRuntime[CallContext, Any], time_zone: str = ""
) -> str:
    """The date and the time now, where the user is or in another time zone.

    Args:
        time_zone: An IANA name such as Asia/Shanghai; empty for the user's own.
    """  # noqa: D401 (models read it)
    zone = find_zone(time_zone) if time_zone else runtime.context.zone
    if zone is None:
        words = f"{time_zone[:80]!r} is no time zone. Use a name such as Europe/Paris."
        raise ToolException(words)
    return write_time(timezone.now(), zone)


def write_time(time: datetime, zone: tzinfo) -> str:
    """ "Sunday 2026-11-22 19:51:05 UTC+01:00 (Europe/Berlin)" """
    local = time.astimezone(zone)
    offset = local.isoformat(timespec="seconds")[19:]
    return f"{local:%A %Y-%m-%d %H:%M:%S} UTC{offset} ({zone})"


@tool(parse_docstring=True)
async def remind_me(
    text: str,
    runtime: ToolRuntime[CallContext, Any],
    in_minutes: float = 0,
    at: str = "",
) -> PendingResult:
    """Remind the user of something later.

    The reminder arrives in this conversation. Give in_minutes or at, not both.

    Args:
        text: What to remind the user of, in the user's language.
        in_minutes: Minutes from now, such as 1 or 90.
        at: A date and time in ISO 8601 such as 2026-05-01T09:30, in the user's time
            zone unless it has one of its own.
    """
    now = timezone.now()
    if bool(in_minutes) == bool(at):
        raise ToolException("Give either in_minutes or at.")
    text = text.strip()
    if not text or len(text) > MAX_CHARS:
        raise ToolException(f"text takes 1 to {MAX_CHARS:,} characters.")
    due = _read_time(at, runtime.context.zone) if at else _add(now, in_minutes)
    if not now < due <= now + LONGEST:
        raise ToolException(
            f"{write_time(due, runtime.context.zone)} is not within the next "
            f"{LONGEST.days} days."
        )
    handle = {"text": text, "asked": now.isoformat(), "due": due.isoformat()}
    seconds = (due - now).total_seconds()
    when = write_time(due, runtime.context.zone)
    return PendingResult(
        handle,
        seconds,
        deadline=seconds + GRACE.total_seconds(),
        content=f"The reminder will come at {when}.",
    )


def _add(now: datetime, minutes: float) -> datetime:
    try:
        return now + timedelta(minutes=minutes)
    except (OverflowError, ValueError):
        raise ToolException("in_minutes is too large.") from None


def _read_time(text: str, zone: tzinfo) -> datetime:
    try:
        found = datetime.fromisoformat(text.strip())
        return (found if found.tzinfo else found.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError):
        words = f"at is {text[:80]!r}; write it like 2026-05-01T09:30."
        raise ToolException(words) from None


async def look_for_reminder(handle: dict[str, Any], context: CallContext) -> Any:
    """Return the reminder once its time has come; until then, a PendingResult."""
    due = datetime.fromisoformat(handle["due"])
    if (left := (due - timezone.now()).total_seconds()) > 0:
        return PendingResult(handle, left)
    asked = datetime.fromisoformat(handle["asked"])
    return f"Reminder, asked for on {write_time(asked, context.zone)}: {handle['text']}"
