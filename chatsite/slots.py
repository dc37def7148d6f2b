"""HTML that apps add to pages of the core, at named places, and their static files.

An app registers its parts in the ready() of its AppConfig. docs/architecture.md lists
the places, and what a part is given at each.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import signature
from typing import TYPE_CHECKING, Any

from django.db.models import F
from django.template import Context
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

if TYPE_CHECKING:
    from memory.models import Conversation

# What reads, of the messages from one number to before another, the value of each.
ReadRows = Callable[["Conversation", int, int | None], Mapping[int, Any]]


@dataclass(frozen=True, slots=True)
class SlotPart:
    """A part of a page: `draw`, called with the slot's values that it has `named`.

    What it shows of messages is read for many at once, and is in the `extra` of each:
    `columns` with its row, `rows` beside it.
    """

    draw: Callable[..., str]
    named: tuple[str, ...]
    columns: Mapping[str, F] = field(default_factory=dict)
    rows: Mapping[str, ReadRows] = field(default_factory=dict)


_parts: dict[str, list[SlotPart]] = defaultdict(list)
_static_files: dict[str, list[str]] = defaultdict(list)


def register(place: str, draw: Callable[..., str] | str, **read: Any) -> None:
    """Show a part in this slot: a template by its name, or what `draw` returns.

    "" shows nothing. A template gets the values of the page. `read`: the columns and
    rows of a SlotPart.
    """
    if isinstance(draw, str):
        draw = _make_include(draw)
    _parts[place].append(SlotPart(draw, tuple(signature(draw).parameters), **read))


def add_static_file(path: str, place: str) -> None:
    """Load a stylesheet or script, by its static path, with the pages of `place`.

    These are "every-page", "list-page" and "conversation-page"; or, when a part of a
    page is first used: "list menus", "bar", "transcript", "model", "dialog", or the
    name of a script that calls onFirstUse.
    """
    _static_files[place].append(path)


def make_link(name: str, text: object) -> Callable[[], SafeString]:
    """Return a part that is a link to the address of this name."""
    return lambda: format_html('<a href="{}">{}</a>', reverse(name), text)


def draw_each(place: str, **values: Any) -> list[str]:
    """Return all that apps show in this slot.

    A part names only the values that it uses, so a slot can have more of them later.
    """
    drawn = (
        part.draw(**{name: values[name] for name in part.named if name in values})
        for part in _parts.get(place, ())
    )
    return [*filter(None, drawn)]


def draw(place: str, **values: Any) -> SafeString:
    """Return the same as HTML."""
    return format_html_join("", "{}", ((each,) for each in draw_each(place, **values)))


def static_files(place: str) -> list[str]:
    return _static_files.get(place, [])


def message_columns() -> dict[str, F]:
    """Return all columns that parts want of messages."""
    return {
        name: column
        for parts in _parts.values()
        for part in parts
        for name, column in part.columns.items()
    }


def read_message_rows(
    conversation: "Conversation", first: int, end: int | None
) -> dict[str, Mapping[int, Any]]:
    """Return all rows that parts want of messages, from `first` to before `end`."""
    wanted = (
        item for parts in _parts.values() for p in parts for item in p.rows.items()
    )
    return {name: read(conversation, first, end) for name, read in wanted}


def _make_include(template: str) -> Callable[[Context], str]:
    def draw(context: Context) -> str:
        return context.template.engine.get_template(template).render(context)

    return draw
