"""The list of conversations as plain values for the templates: sections by date, or
what a search has found.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from itertools import groupby
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.http import QueryDict
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from memory import library
from memory.models import Conversation
from memory.search import conversation_search

from ..forms import ListForm

PAGE = 200
# What a row of the list shows; policies and prompts stay in the database.
COLUMNS = ("uuid", "title", "updated_at", "pinned_at", "archived_at")
MAX_TITLES = 20
MAX_UNDO = 3


@dataclass(frozen=True, slots=True)
class Section:
    """Conversations under one heading; `name` is empty where none is needed."""

    name: str
    rows: list[Conversation]


def listed(user: AbstractBaseUser, data: QueryDict) -> dict[str, Any]:
    """What the templates of the list need; `data` says which part is requested."""
    form = ListForm(data)
    if not form.is_valid():
        return {"sections": [], "query": data.get("q", ""), "found": []}
    query, archived = form.cleaned_data["q"], form.cleaned_data["view"] == "archived"
    shown: dict[str, Any] = {
        "query": query,
        "archived": archived,
        "open_uuid": form.cleaned_data["open"],
        "undo": library.deleted_lately(user)[:MAX_UNDO],
    }
    if query:
        titles = list(conversation_search.find_titles(user, query)[:MAX_TITLES])
        shown["sections"] = [Section(_("Titles"), titles)] if titles else []
        shown["found"] = conversation_search.find_messages(user, query)
        return shown
    most = form.cleaned_data["show"] or PAGE
    found = library.listed(user, archived=archived).only(*COLUMNS)
    rows = list(found[: most + 1])
    shown["sections"] = list(group(rows[:most]))
    shown["more"] = most + PAGE if len(rows) > most else None
    shown["archived_count"] = library.listed(user, archived=True).count()
    return shown


def group(rows: Iterable[Conversation]) -> Iterator[Section]:
    """Pinned ones, then the others by the day of their latest change in the site's
    zone. The rows come in this order already."""
    today = timezone.localdate()
    for name, section in groupby(rows, key=lambda row: _heading(row, today)):
        yield Section(name, list(section))


def _heading(row: Conversation, today: date) -> str:
    if row.pinned_at:
        return _("Pinned")
    day = timezone.localtime(row.updated_at).date()
    age = (today - day).days
    if age <= 0:
        return _("Today")
    if age == 1:
        return _("Yesterday")
    if age <= 7:
        return _("Previous 7 days")
    return date_format(day, "YEAR_MONTH_FORMAT")
