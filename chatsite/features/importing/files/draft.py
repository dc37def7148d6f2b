"""A conversation that was read from a file and not yet stored."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext as _
from pydantic import BaseModel

from chatsite.plugins import NEWEST, OLDEST
from chatsite.turns.copying.copies import TurnInfo
from memory.bundle import Bundle
from memory.engine.blank import is_blank

from ..tables import exported_lists
from .reading import ImportItemError
from .remainder import Remainder

TITLE_MAX = 200
# Characters of the result of a tool, with the mark of one that was cut.
MOST_OF_RESULT = 10_001_000


@dataclass(frozen=True, slots=True)
class ImportedPicture:
    """An image of a message: the id of its file in the archive, or "", and its name."""

    id: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Draft:
    """`source` names where it comes from, such as "chatgpt:<id>"."""

    source: str
    title: str
    bundle: Bundle
    infos: Mapping[int, TurnInfo] = field(default_factory=dict)
    # By the numbers of their messages: not read yet.
    pictures: Mapping[int, Sequence[ImportedPicture]] = field(default_factory=dict)
    # The rows of apps, by the names of their lists.
    sections: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    policy: dict[str, Any] = field(default_factory=dict)
    model: str = ""
    temperature: float | None = None
    system_prompt: str = ""
    is_title_of_person: bool = False
    # The messages that the title was made of, if that is known.
    title_seqs: Sequence[int] | None = None
    # The number of parts that were not imported, by kind.
    left: Mapping[str, int] = field(default_factory=dict)
    # Lists of the file that were not taken, in words.
    left_out: str = ""


@dataclass(slots=True)
class DraftMessage:
    """One message of another chat's export."""

    role: str
    text: str
    at: datetime | None = None
    model: str = ""  # as the export calls it
    # Tool calls in LangChain's form, each with an id of its own.
    calls: list[dict[str, Any]] = field(default_factory=list)
    answers: str = ""  # of a result (role "tool"): the id of its call
    failed: bool = False
    pictures: list[ImportedPicture] = field(default_factory=list)
    reasoning: str = ""
    # The messages that continue it.
    more: list["DraftMessage"] = field(default_factory=list)

    def join_more(self) -> None:
        """All at once: there can be as many as the file has room for."""
        for name in ("text", "reasoning"):
            found = (getattr(each, name) for each in (self, *self.more))
            setattr(self, name, "\n\n".join(filter(None, found)))

    @property
    def is_empty(self) -> bool:
        has_more = self.calls or self.pictures or self.reasoning or self.role == "tool"
        return not has_more and is_blank(self.text)


def clean_title(title: object) -> str:
    words = " ".join(str(title or "").split())[:TITLE_MAX]
    return "" if is_blank(words) else words


def from_talk(
    source: str, title: object, talk: Iterable[DraftMessage], site: str, rest: Remainder
) -> Draft:
    """Return a draft of messages in turns.

    Replies that follow each other become one, by the model of the last. `site` is the
    author of the replies, as users know it; `rest` is complete once all messages are
    read.
    """
    said = _join_turns(talk)
    if not said:
        raise ImportItemError(_("it is empty."))
    check_count(len(said))
    now = timezone.now()
    rows, infos, at, user = [], {}, said[0].at or now, 0
    for seq, each in enumerate(said, 1):
        check_length(seq, each.text, each.role)
        check_length(seq, each.reasoning)
        check_length(seq, json.dumps(each.calls))
        at = each.at or at
        is_user = each.role == "user"
        user = seq if is_user else user
        if each.role == "assistant":
            author = f"{site} ({each.model})" if each.model else site
            infos[user] = TurnInfo(model=author)
        rows.append(
            {
                "seq": seq,
                "role": each.role,
                "text": each.text,
                "reasoning": each.reasoning,
                "tool_calls": each.calls,
                "tool_call_id": each.answers,
                "created_at": at,
                "imported_at": None if is_user else now,
            }
        )
    return Draft(
        source,
        clean_title(title),
        Bundle(messages=rows),
        infos,
        pictures={n: each.pictures for n, each in enumerate(said, 1) if each.pictures},
        sections={"tool_calls": list(_list_failed_calls(said))},
        left=rest.kinds,
    )


def _list_failed_calls(said: list[DraftMessage]) -> Iterator[BaseModel]:
    """Yield the calls that have failed; the messages describe the others."""
    places = {}
    for seq, each in enumerate(said, 1):
        places |= {call["id"]: (seq, n) for n, call in enumerate(each.calls)}
        if each.failed:
            request, place = places[each.answers]
            values = {"seq": request, "place": place, "result_seq": seq}
            for each in exported_lists():
                if each.name == "tool_calls":
                    yield each.row(**values, state="failed")


def _join_turns(talk: Iterable[DraftMessage]) -> list[DraftMessage]:
    said: list[DraftMessage] = []
    results: dict[str, DraftMessage | None] = {}  # by the ids of the calls so far
    for each in talk:
        results |= dict.fromkeys(call["id"] for call in each.calls)
        known = results.get(each.answers)
        if each.is_empty or each.role == "tool" and each.answers not in results:
            continue
        if known:
            # A call has one result.
            known.more.append(each)
        elif said and _goes_on(said[-1], each):
            said[-1].more.append(each)
            said[-1].calls += each.calls
            said[-1].pictures += each.pictures
            said[-1].model = each.model
        else:
            said.append(each)
            if each.role == "tool":
                results[each.answers] = each
    for each in said:
        each.join_more()
    if said and said[0].role == "assistant":
        # Every reply here answers a message.
        first = _("(The conversation began with this reply.)")
        said.insert(0, DraftMessage("user", first, said[0].at))
    return said


def _goes_on(before: DraftMessage, each: DraftMessage) -> bool:
    """Return whether both are one message, as a text and the calls behind it are."""
    is_same = before.role == each.role == "assistant"
    return is_same and not (before.calls and (each.text or each.pictures))


def check_count(count: int) -> None:
    if count > settings.IMPORT_MAX_MESSAGES:
        raise ImportItemError(
            _("it has %(count)s messages; the limit is %(limit)s.")
            % {"count": count, "limit": settings.IMPORT_MAX_MESSAGES}
        )


def check_length(seq: int, text: str, role: str = "") -> None:
    limit = MOST_OF_RESULT if role == "tool" else settings.IMPORT_MAX_CHARS
    if len(text) > limit:
        words = _("message %(seq)s has %(count)s characters; the limit is %(limit)s.")
        raise ImportItemError(words % {"seq": seq, "count": len(text), "limit": limit})


def read_time(value: object) -> datetime | None:
    """Return a time given as seconds or as text, None if it is not valid."""
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
