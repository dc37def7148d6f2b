"""Causes of the differences between two requests: actions, or passed time."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from langchain_core.messages import BaseMessage

from memory.models.change import Change
from memory.ranges import Ranges, is_within

from .comparison import BlockPair
from .sent_requests import RequestComparison, SentRequest

# Causes by code, in the order in which they are shown.
WORDS = {
    "first": gettext_lazy("It is the first request: there was nothing in the cache."),
    "instructions": gettext_lazy("The instructions to the model have changed."),
    "tools": gettext_lazy("The list of tools has changed."),
    "summary": gettext_lazy("The summaries have changed."),
    "recall": gettext_lazy("Other notes were recalled for the newest message."),
    "moved": gettext_lazy(
        "The sent text has moved: notes are in another place, or older messages "
        "and long results were shortened."
    ),
    "excluded": gettext_lazy("A message was hidden from the model, or shown again."),
    "pinned": gettext_lazy("Other messages are pinned."),
    "fact": gettext_lazy("The facts about the user have changed."),
    "rule": gettext_lazy("The rules have changed."),
    "model": gettext_lazy("Another model was asked, or another provider."),
    "dialect": gettext_lazy("The provider takes messages in another form."),
    "file": gettext_lazy("Other passages or images of a file were sent."),
    "idle": gettext_lazy("More time had passed than a provider keeps its cache."),
    "edited": gettext_lazy("A message was edited."),
    "newest": gettext_lazy("The conversation went on: it ends with newer messages."),
}
HIDING = (Change.Action.LEAVE_OUT, Change.Action.BRING_BACK)


@dataclass(frozen=True, slots=True)
class Cause:
    """A code with a short detail: the versions, numbers or names that changed."""

    code: str
    detail: str = ""

    @property
    def words(self) -> str:
        return str(WORDS[self.code])


def find_causes(compared: RequestComparison, pairs: Iterable[BlockPair]) -> list[Cause]:
    """Return all causes, in the order of WORDS; none if both requests are equal."""
    if compared.a is None:
        return [Cause("first")]
    is_moved = any(pair.change == "moved" for pair in pairs)
    finder = _Finder(compared.a, compared, is_moved=is_moved)
    found = {cause.code: cause for cause in finder}
    return [found[code] for code in WORDS if code in found]


class _Finder:
    def __init__(
        self, a: SentRequest, compared: RequestComparison, *, is_moved: bool
    ) -> None:
        self.a, self.b, self.compared, self.is_moved = a, compared.b, compared, is_moved
        self.hidden, self.edited, self.squeezed = self._sort_missing()

    def __iter__(self) -> Iterator[Cause]:
        yield from self._of_settings()
        yield from self._of_summaries()
        yield from self._of_notes()
        yield from self._of_messages()
        if self._has_rested():
            yield Cause("idle")

    def _differs(self, name: str, default: Any = None) -> bool:
        return self.a.refs.get(name, default) != self.b.refs.get(name, default)

    def _of_settings(self) -> Iterator[Cause]:
        a, b = self.a, self.b
        said = [each.built.context.get_section("system") for each in (a, b)]
        if self._differs("system") or _list_texts(said[0]) != _list_texts(said[1]):
            yield Cause("instructions")
        tools, before = _list_tool_names(b), _list_tool_names(a)
        is_refused = bool(a.refs.get("tools_refused")) != bool(
            b.refs.get("tools_refused")
        )
        is_taken_differently = is_refused and before == tools
        changed = any(map(self._differs, ("tools", "tools_sha256", "tool_choice")))
        if changed and not is_taken_differently:
            yield Cause("tools", _name_changes(before, tools))
        if self._differs("shape") or is_taken_differently:
            yield Cause("dialect")
        if (a.call.model, a.call.provider) != (b.call.model, b.call.provider):
            yield Cause("model", _arrow([a.call.model], [b.call.model]))
        if self._differs("facts", []):
            yield Cause("fact")
        if self._differs("rules", []):
            yield Cause("rule")

    def _of_summaries(self) -> Iterator[Cause]:
        before, now = _list_versions(self.a), _list_versions(self.b)
        if before != now or (now and self._differs("fence")):
            removed = [f"v{each}" for each in before if each not in now]
            added = [f"v{each}" for each in now if each not in before]
            yield Cause("summary", _arrow(removed, added))

    def _of_notes(self) -> Iterator[Cause]:
        before, now = _read_notes(self.a), _read_notes(self.b)
        changed = {seq for seq, _how in before ^ now}
        states = self.compared.states
        files = {n for n in changed if n in states and states[n].attachments}
        files |= self._find_dropped_images()
        if files:
            yield Cause("file", _name_numbers(files))
        if changed - files:
            yield Cause("recall", _name_numbers(changed - files))

    def _find_dropped_images(self) -> set[int]:
        """Return the messages of both requests whose image is in only one of them."""
        before, now = (
            {(seq, n) for seq, n, _ in each.refs.get("images", ())}
            for each in (self.a, self.b)
        )
        return {seq for seq, _ in before ^ now} & self.a.numbers & self.b.numbers

    def _of_messages(self) -> Iterator[Cause]:
        if self.hidden:
            yield Cause("excluded", _name_numbers(self.hidden))
        if self.edited:
            yield Cause("edited", _name_numbers(self.edited))
        pinned = (self.a.pinned ^ self.b.pinned) - self.hidden - self.edited
        if pinned:
            yield Cause("pinned", _name_numbers(pinned))
        cut = ("left_out", "shortened", "clipped")
        has_less_room = any(self._differs(name) for name in cut) or self._has_trimmed()
        if self.is_moved or self.squeezed or has_less_room:
            yield Cause("moved")
        if self._differs("newest") or self._differs("steps"):
            yield Cause("newest")

    def _has_trimmed(self) -> bool:
        """Return whether messages left the window without a summary between the two."""
        trimmed = [
            {row.version for row in each.built.summaries if row.is_trimmed}
            for each in (self.a, self.b)
        ]
        return trimmed[0] != trimmed[1]

    def _has_rested(self) -> bool:
        before = self.compared.before
        most = timedelta(seconds=settings.PROMPT_CACHE_SECONDS)
        return before is not None and self.b.call.created_at - before > most

    def _sort_missing(self) -> tuple[set[int], set[int], set[int]]:
        """Return the hidden, the edited and the left-out messages of only one request.

        Only messages count that lie within the reach of both requests and that no
        summary of the other one covers. The third set had no room in the request.
        """
        sorted_out: tuple[set[int], set[int], set[int]] = (set(), set(), set())
        states = self.compared.states
        for one, other in ((self.a, self.b), (self.b, self.a)):
            reach, covered = other.refs.get("newest") or 0, _list_covered(other)
            for n in one.numbers - other.numbers:
                if n > reach or is_within(n, covered):
                    continue
                state = states.get(n)
                is_edited = state and state.superseded_at and not state.deleted_at
                is_squeezed = is_within(n, other.refs.get("left_out", ()))
                sorted_out[2 if is_squeezed else 1 if is_edited else 0].add(n)
        hidden, edited, squeezed = sorted_out
        if _list_versions(self.a) != _list_versions(self.b):
            # Changes to a message behind the window show in the summaries.
            covered = _list_covered(self.a) + _list_covered(self.b)
            done = [
                each for each in self.compared.changes if is_within(each[1], covered)
            ]
            hidden |= _find_hidden(done)
            edited |= {n for action, n in done if action == Change.Action.EDIT}
        return hidden, edited, squeezed


def _find_hidden(changes: Sequence[tuple[str, int]]) -> set[int]:
    """Return the messages that were hidden, shown again or deleted.

    Messages whose hiding was reversed are not among them.
    """
    counts = Counter(n for action, n in changes if action in HIDING)
    deleted = {n for action, n in changes if action == Change.Action.DELETE}
    return deleted | {n for n, count in counts.items() if count % 2}


def _list_texts(messages: Iterable[BaseMessage]) -> list[str]:
    return [message.text for message in messages]


def _list_covered(request: SentRequest) -> Ranges:
    return [[row.first_seq, row.last_seq] for row in request.built.summaries]


def _list_versions(request: SentRequest) -> list[int]:
    """Return the versions of the summaries that the request quotes."""
    rows = request.built.summaries
    return [row.version for row in rows if not row.is_trimmed]


def _list_tool_names(request: SentRequest) -> list[str]:
    refs = request.refs
    return [*refs.get("tools", ()), *refs.get("tools_refused", ())]


def _read_notes(request: SentRequest) -> set[tuple[int, Any]]:
    """Return the numbers of the recalled messages, with the parts quoted of each."""
    refs = request.refs
    marks: dict[int, list[Any]] = {seq: [] for seq in refs.get("recalled", ())}
    for name in ("excerpts", "lines", "replaced", "until"):
        for seq, *how in refs.get(name, ()):
            marks.setdefault(seq, []).append((name, *how))
    return {(seq, tuple(how)) for seq, how in marks.items()}


def _name_changes(before: list[str], now: list[str]) -> str:
    removed = [f"−{name}" for name in before if name not in now]
    return ", ".join(removed + [f"+{name}" for name in now if name not in before])


def _arrow(removed: list[str], added: list[str]) -> str:
    sides = (", ".join(removed), ", ".join(added))
    return " → ".join(side or _("none") for side in sides) if any(sides) else ""


def _name_numbers(found: Iterable[int], most: int = 6) -> str:
    numbers = sorted(found)
    shown = ", ".join(f"#{n}" for n in numbers[:most])
    return f"{shown}, …" if len(numbers) > most else shown
