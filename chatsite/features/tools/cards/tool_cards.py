"""Calls of tools as cards: what was asked, how far it is and what came of it.

A page gets the beginning of a long result; the whole of it has an address of its own.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import blake2b
from typing import Any

from django.db.models import Q, QuerySet
from django.db.models.functions import Left, Length
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from chatsite.features.tools.models import ToolCall
from chatsite.features.tools.registry import label_of
from chatsite.features.tools.tool_loop import reminders
from chatsite.pages.presenters.calls import (
    ARGUMENT_CHARS,
    RESULT_CHARS,
    arguments_of,
    visible,
)
from chatsite.pages.presenters.locations import Location
from chatsite.protocol.errors import EXPLANATIONS, explain_code
from chatsite.turns.models import Turn
from memory.models import Conversation, Message

from . import file_cards
from .file_cards import FileCard

# The columns that a card has from the row of its call.
OF_CALL = (
    *("state", "digest", "ms", "allowed", "answered_at", "reason"),
    *("expires_at", "deadline_at"),
)
# The limit of the line in the card's head.
PREVIEW_CHARS = 120


@dataclass(frozen=True, slots=True)
class CardAnswer:
    """A message that answers a call: the beginning of its text."""

    seq: int
    text: str
    chars: int  # of the whole
    sent_chars: int  # that a model gets of it
    created_at: datetime
    location: Location
    # True if the message's address leads to it, which it does unless it came later.
    is_anchor: bool
    files: tuple[FileCard, ...] = ()
    is_pinned: bool = False

    @property
    def sources(self) -> tuple[FileCard, ...]:
        """Pages of the web, by their numbers."""
        return tuple(file for file in self.files if file.source)

    @property
    def other_files(self) -> tuple[FileCard, ...]:
        return tuple(file for file in self.files if not file.source)

    @property
    def is_whole(self) -> bool:
        return len(self.text) == self.chars

    @property
    def is_shortened(self) -> bool:
        return self.sent_chars < self.chars


@dataclass(frozen=True, slots=True)
class ToolCard:
    """The card of one call, below a message of the transcript.

    `call` is None if only messages have a record of it, as after an import.
    """

    seq: int  # of the message that asked for it
    place: int  # among that message's calls
    name: str
    state: str
    arguments: str
    preview: str
    arguments_chars: int
    call: int | None = None
    digest: str = ""
    # In its place, and after its turn.
    answers: tuple[CardAnswer, ...] = ()
    ms: int | None = None
    error: str = ""  # a sentence for people, or ""
    allowed: bool | None = None
    answered_at: datetime | None = None
    reason: str = ""
    expires_at: datetime | None = None
    deadline_at: datetime | None = None
    has_request: bool = False
    # True if the message's address leads here: the message has no text.
    is_anchor: bool = False
    # Drawn where its answer came in: after its turn, or without a call.
    is_arrival: bool = False
    asked_by: int | None = None  # the message that the answer is to, if it is known
    reminds_of: str = ""  # what it is to remind the user of, if it is a reminder
    label: str = ""  # of the tool, for people
    is_stopped: bool = False  # its turn was stopped before it had ended

    @property
    def pk(self) -> int | None:
        return self.call

    @property
    def is_open(self) -> bool:
        return self.state in ToolCall.UNANSWERED

    def draw(self, conversation: Conversation) -> SafeString:
        values = {"conversation": conversation, "card": self}
        return render_to_string("tools/_step.html", values)

    def draw_alone(self, conversation: Conversation) -> SafeString:
        """Return the card as a fragment that replaces the one on a page."""
        values = {"conversation": conversation, "card": self}
        return render_to_string("tools/_card_alone.html", values)

    @property
    def id(self) -> str:
        """The id of its element."""
        return f"message-{self.seq}" if self.is_anchor else f"call-{self.key}"

    @property
    def key(self) -> str:
        return f"{self.seq}-{self.place}"

    @property
    def drawn(self) -> str:
        """Tells a page whether it shows this card as it is."""
        return blake2b(repr(self).encode(), digest_size=6).hexdigest()

    @property
    def has_come(self) -> bool:
        """True for a reminder that is due, and so a message."""
        return bool(self.reminds_of and self.is_arrival and self.state == "done")

    @property
    def has_late_answer(self) -> bool:
        return any(not answer.is_anchor for answer in self.answers)

    @property
    def has_all_arguments(self) -> bool:
        return len(self.arguments) == self.arguments_chars

    @property
    def state_name(self) -> str:
        if self.allowed is False and self.state == ToolCall.State.CANCELLED:
            return _("Declined")
        if self.is_stopped:
            return _("Stopped")
        if self.state == ToolCall.State.LATE:
            return _("Scheduled") if self.reminds_of else _("Pending")
        return str(STATES[self.state])

    @property
    def took(self) -> str:
        """The duration of the call for people; "" = not known."""
        if self.ms is None:
            return ""
        if self.ms < 1000:
            return _("%(n)s ms") % {"n": self.ms}
        if self.ms < 60_000:
            return _("%(n)s s") % {"n": f"{self.ms / 1000:.1f}"}
        minutes, seconds = divmod(self.ms // 1000, 60)
        return _("%(m)s min %(s)s s") % {"m": minutes, "s": seconds}


STATES = dict(ToolCall.State.choices)
# The states of running calls after a stop of the turn.
UNDONE = (ToolCall.State.CANCELLED, ToolCall.State.UNKNOWN)


def _preview(value: Any) -> str:
    if not isinstance(value, dict):
        return ""
    parts = []
    for name, part in value.items():
        text = part if isinstance(part, str) else json.dumps(part, ensure_ascii=False)
        parts.append(f"{name}: {text[:PREVIEW_CHARS]}")
        if sum(map(len, parts)) > PREVIEW_CHARS:
            break
    line = visible(" ".join(", ".join(parts).split()))
    return line if len(line) <= PREVIEW_CHARS else line[: PREVIEW_CHARS - 1] + "…"


Locate = Callable[[Message], Location]


def read_cards(
    conversation: Conversation,
    turns: Sequence[Turn],
    rows: Sequence[Message],
    locate: Locate,
) -> dict[int, tuple[ToolCard, ...]]:
    """Return the cards of these turns by the number of the message above them.

    An empty tuple marks a result that is on the card of its call, and so no message of
    its own. `rows`: the turns' messages, from without_long_texts() and with_model().
    Queries the database only if there are calls.
    """
    asking = [row for row in rows if row.tool_calls]
    results = [row for row in rows if row.role == Message.Role.TOOL]
    if not asking and not results:
        return {}
    calls = list(_calls(conversation, turns, results))
    known = {(call.request_id, call.place): call for call in calls}
    late = {call.late_result_id: call for call in calls if call.late_result_id}
    keys = {row.pk for row in results}.union(late)
    answers = _Answers(results, locate, file_cards.read(keys))
    cards: dict[int, tuple[ToolCard, ...]] = {}
    for row in asking:
        cards[row.seq] = tuple(
            _card(row, place, asked, known.get((row.pk, place)), answers)
            for place, asked in enumerate(row.tool_calls)
        )
    for row in results:
        is_shown = row.seq in answers.taken and row.pk not in late
        cards[row.seq] = () if is_shown else (_arrived(row, late.get(row.pk), answers),)
    return cards


def _calls(
    conversation: Conversation, turns: Sequence[Turn], results: Iterable[Message]
) -> QuerySet[ToolCall]:
    """Return the calls of the turns, and those whose late results are among them."""
    rows = ToolCall.objects.filter(
        Q(turn__in=turns) | Q(late_result__in=[row.pk for row in results]),
        conversation=conversation,
    )
    rows = rows.select_related("request", "late_result", "turn")
    return rows.defer(
        *("request__text", "request__sent_text", "request__reasoning"),
        *("late_result__text", "late_result__sent_text", "handle", "turn__text"),
    ).annotate(
        head=Left("late_result__text", RESULT_CHARS),
        chars=Length("late_result__text"),
        sent_chars=Length("late_result__sent_text"),
    )


class _Answers:
    """The messages that answer calls, each given to one call."""

    def __init__(
        self,
        results: Iterable[Message],
        locate: Locate,
        files: Mapping[int, tuple[FileCard, ...]],
    ) -> None:
        self.locate, self.files = locate, files
        self.taken: set[int] = set()
        self.by_pk = {row.pk: row for row in results}

    def of_call(self, call: ToolCall) -> Iterator[CardAnswer]:
        """Yield the answers that the row of the call refers to."""
        if row := self.by_pk.get(call.result_id):
            yield self.take(row)
        if call.late_result:
            # It may have come in turns later, where this page does not reach.
            yield self.take(call.late_result, call, is_anchor=False)

    def by_id(self, request: Message, asked: dict[str, Any]) -> Iterator[CardAnswer]:
        """Yield the next message behind the request that names the call's id."""
        for row in self.by_pk.values():
            is_next = row.seq > request.seq and row.seq not in self.taken
            if row.late_for is None and is_next and row.tool_call_id == asked.get("id"):
                yield self.take(row)
                return

    def take(
        self, row: Message, texts: Any = None, *, is_anchor: bool = True
    ) -> CardAnswer:
        """`texts` has what without_long_texts() adds to rows, if not the row itself."""
        texts = texts or row
        self.taken.add(row.seq)
        return CardAnswer(
            seq=row.seq,
            text=texts.head or "",
            chars=texts.chars or 0,
            sent_chars=texts.sent_chars or texts.chars or 0,
            created_at=row.created_at,
            location=self.locate(row),
            is_anchor=is_anchor,
            files=self.files.get(row.pk, ()),
            is_pinned=row.pinned_at is not None,
        )


def _card(
    row: Message,
    place: int,
    asked: dict[str, Any],
    call: ToolCall | None,
    answers: _Answers,
) -> ToolCard:
    value = asked.get("args", {})
    text = arguments_of(value)
    found = tuple(answers.of_call(call) if call else ())
    found = found or tuple(answers.by_id(row, asked))
    card = ToolCard(
        seq=row.seq,
        place=place,
        name=visible(str(asked.get("name") or "")),
        # Without a row of its own nothing but a result tells that it has run.
        state=ToolCall.State.DONE if found else ToolCall.State.UNKNOWN,
        arguments=text[:ARGUMENT_CHARS],
        arguments_chars=len(text),
        label=label_of(str(asked.get("name") or "")),
        preview=_preview(value),
        answers=found,
        has_request=row.model is not None,
        is_anchor=place == 0 and not (row.head or row.reasoning),
    )
    return _with_state(card, call) if call else card


def _with_state(card: ToolCard, call: ToolCall) -> ToolCard:
    return replace(
        card,
        **{name: getattr(call, name) for name in OF_CALL},
        call=call.pk,
        # Without an explanation here, the result has the reason.
        error=explain_code(call.error) if call.error in EXPLANATIONS else "",
        reminds_of=reminders.text_of(call),
        is_stopped=call.state in UNDONE and call.turn.state == Turn.State.STOPPED,
    )


def _arrived(row: Message, call: ToolCall | None, answers: _Answers) -> ToolCard:
    """Return the card of a result that came after its turn or lacks its call."""
    is_deleted = row.deleted_at is not None
    return ToolCard(
        seq=row.seq,
        place=0,
        name=visible(call.name) if call else "",
        label=label_of(call.name) if call else "",
        state=call.state if call else ToolCall.State.DONE,
        arguments="",
        arguments_chars=0,
        preview="",
        answers=(answers.take(row, is_anchor=False),),
        is_anchor=True,
        is_arrival=True,
        asked_by=call.request.seq if call else row.late_for,
        reminds_of="" if is_deleted or not call else reminders.text_of(call),
    )
