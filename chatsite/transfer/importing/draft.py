"""A conversation that was read from a file and not yet stored."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext as _

from memory.bundle import Bundle
from memory.engine.blank import is_blank

from ..copies import TurnInfo
from .reading import ImportItemError

TITLE_MAX = 200
# Outside of these a date is a mistake, and at the ends of what Python knows it can't be
# written in another zone.
OLDEST, NEWEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Draft:
    """`source` names where it comes from, such as "chatgpt:<id>"."""

    source: str
    title: str
    bundle: Bundle
    infos: Mapping[int, TurnInfo] = field(default_factory=dict)
    policy: dict[str, Any] = field(default_factory=dict)
    model: str = ""
    system_prompt: str = ""


@dataclass(slots=True)
class Said:
    """One message of another chat's export."""

    role: str
    text: str
    at: datetime | None = None
    model: str = ""  # as the export calls it


def clean_title(title: object) -> str:
    words = " ".join(str(title or "").split())[:TITLE_MAX]
    return "" if is_blank(words) else words


def from_talk(source: str, title: object, talk: Iterable[Said], site: str) -> Draft:
    """A draft of messages in turns: replies that follow each other become one, by the
    model of the last. `site` is who wrote them, as people know it."""
    said = _in_turns(talk)
    if not said:
        raise ImportItemError(_("it contains no text."))
    check_count(len(said))
    now = timezone.now()
    rows, infos, at = [], {}, said[0].at or now
    for seq, each in enumerate(said, 1):
        check_length(seq, each.text)
        at = each.at or at
        is_reply = each.role == "assistant"
        if is_reply:
            author = f"{site} ({each.model})" if each.model else site
            infos[seq - 1] = TurnInfo(model=author)
        rows.append(
            {
                "seq": seq,
                "role": each.role,
                "text": each.text,
                "created_at": at,
                "imported_at": now if is_reply else None,
            }
        )
    return Draft(source, clean_title(title), Bundle(messages=rows), infos)


def _in_turns(talk: Iterable[Said]) -> list[Said]:
    said: list[Said] = []
    for each in talk:
        if is_blank(each.text):
            continue
        if said and each.role == said[-1].role == "assistant":
            said[-1].text += f"\n\n{each.text}"
            said[-1].model = each.model
        else:
            said.append(each)
    if said and said[0].role == "assistant":
        # Every reply here answers a message.
        first = _("(The conversation began with this reply.)")
        said.insert(0, Said("user", first, said[0].at))
    return said


def check_count(count: int) -> None:
    if count > settings.IMPORT_MAX_MESSAGES:
        raise ImportItemError(
            _("it has %(count)s messages; the limit is %(limit)s.")
            % {"count": count, "limit": settings.IMPORT_MAX_MESSAGES}
        )


def check_length(seq: int, text: str) -> None:
    if len(text) > settings.IMPORT_MAX_CHARS:
        raise ImportItemError(
            _("message %(seq)s has %(count)s characters; the limit is %(limit)s.")
            % {"seq": seq, "count": len(text), "limit": settings.IMPORT_MAX_CHARS}
        )


def read_time(value: object) -> datetime | None:
    """A time as seconds or as text; None for what is none."""
    try:
        if isinstance(value, str):
            time = datetime.fromisoformat(value)
            time = time if time.tzinfo else time.replace(tzinfo=UTC)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            time = datetime.fromtimestamp(value, UTC)
        else:
            return None
    except (ValueError, OverflowError, OSError):
        return None
    return time if OLDEST <= time <= NEWEST else None
