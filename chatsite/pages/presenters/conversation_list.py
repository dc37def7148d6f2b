"""The list of conversations as plain values for the templates.

It has sections by date, or the results of a search, narrowed by the filters of apps.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from itertools import groupby, islice
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.models import AbstractBaseUser
from django.db.models import CharField, Count, QuerySet, Value
from django.db.models.functions import JSONObject
from django.http import QueryDict
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from chatsite import plugins
from chatsite.features.tree.listing import narrow_rows
from memory import library
from memory.engine.search.terms import spell
from memory.models import Conversation
from memory.search import conversation_search
from memory.sql import prepared_rows

from ..forms import ListForm

PAGE = 200
# What a row of the list shows; policies and prompts stay in the database.
COLUMNS = (
    *("uuid", "title", "updated_at", "pinned_at", "archived_at", "imported_from"),
)
MAX_TITLES = 20
MAX_UNDO = 3


@dataclass(frozen=True, slots=True)
class ListSection:
    """Conversations under one heading; `name` is empty where none is needed."""

    name: str
    rows: list[Conversation]


def make_list(user: AbstractBaseUser, data: QueryDict) -> dict[str, Any]:
    """Return the values of the list's templates; `data` names the requested part."""
    form = ListForm(data)
    if not form.is_valid():
        return {"sections": [], "query": data.get("q", ""), "found": []}
    asked = form.cleaned_data
    query, archived = asked["q"], asked["view"] == "archived"
    known = plugins.sources[plugins.ListFilter]
    filters = {name: asked[name] for name in known}
    keys = {name: key for name, key in filters.items() if key is not None}
    counted = _with_archived(user=user.pk, **keys)
    shown: dict[str, Any] = {
        "query": query,
        "archived": archived,
        "open_uuid": asked["open"],
        "undo": list(_list_deletions(user)),
        "filters": filters,
        "choosers": [],
        "folds": [],
        "chosen": urlencode(keys),
        "nothing": next((known[name].nothing for name in keys), ""),
        "selecting": asked["select"],
        "most_at_once": library.MOST_AT_ONCE,
        "state": _keep_state(asked),
    }
    marking: list[Callable[..., Mapping[int, Sequence[str]]]] = []
    for each in known.values():
        choices = [choice for name, choice in counted if name == each.name]
        shown |= each.describe_choices(choices, filters[each.name])
        if choices:
            place = "folds" if each.unfold else "choosers"
            shown[place].append(each.template)
            chosen = filters[each.name]
            marking.append(partial(each.find_marks, choices=choices, chosen=chosen))
    if query:
        searched = _narrow_by_filters(conversation_search.list_searched(user), keys)
        titled = narrow_rows(searched.filter(title__iregex=spell(query).pattern))
        titles = list(titled.only(*COLUMNS)[:MAX_TITLES])
        shown["sections"] = [ListSection(_("Titles"), titles)] if titles else []
        shown["found"] = conversation_search.find_messages(user, query, searched)
        shown["row_marks"] = _find_marks(titles, marking)
        return shown
    most = asked["show"] or PAGE
    if archived or most > PAGE:
        rows = list(_select_rows(user, keys, archived=archived)[: most + 1])
    else:
        rows = _select_first_page(user=user.pk, **keys)
    shown["sections"] = list(group_by_day(rows[:most]))
    shown["more"] = most + PAGE if len(rows) > most else None
    shown["row_marks"] = _find_marks(rows[:most], marking)
    shown["archived_count"] = sum(row["count"] for name, row in counted if not name)
    return shown


def _select_rows(
    user: Any, keys: Mapping[str, Any], *, archived: bool
) -> QuerySet[Conversation]:
    listed = library.list_conversations(user, archived=archived)
    found = _narrow_by_filters(narrow_rows(listed), keys)
    for each in plugins.sources[plugins.ListFilter].values():
        if each.unfold and not archived and each.name not in keys:
            found = each.unfold(found)
    return found.only(*COLUMNS)


@prepared_rows()
def _select_first_page(user: Any, **keys: Any) -> QuerySet[Conversation]:
    """Return the rows that every page with the list shows, and one more if any."""
    return _select_rows(user, keys, archived=False)[: PAGE + 1]


def _keep_state(asked: dict[str, Any]) -> QueryDict:
    """Return the parameters of the address that the links of the list keep."""
    names = ("q", "view", *plugins.sources[plugins.ListFilter], "select")
    state = QueryDict(mutable=True)
    state.update({name: asked[name] for name in names if asked[name]})
    return state


def _narrow_by_filters(
    rows: QuerySet[Conversation], keys: Mapping[str, Any]
) -> QuerySet[Conversation]:
    for each in plugins.sources[plugins.ListFilter].values():
        if each.name in keys:
            rows = each.narrow(rows, keys[each.name])
    return rows


def _find_marks(
    rows: Sequence[Conversation],
    marking: Iterable[Callable[..., Mapping[int, Sequence[str]]]],
) -> dict[int, list[str]]:
    """Return the marks of the filters that the rows show."""
    found: dict[int, list[str]] = {}
    for find in marking if rows else ():
        for pk, names in find(rows).items():
            found.setdefault(pk, []).extend(names)
    return found


def _list_deletions(user: AbstractBaseUser) -> Iterator[list[Conversation]]:
    """Yield what deletions that can be undone have deleted, the latest first.

    All that one action deleted has the same time.
    """
    found = groupby(_select_deleted(user=user.pk), key=lambda row: row.deleted_at)
    for _at, together in islice(found, MAX_UNDO):
        yield list(together)


@prepared_rows()
def _with_archived(user: Any, **keys: Any) -> QuerySet[Any, Any]:
    """Return each filter's choices after its name, and the archived count after "".

    One statement, as every page with the list runs it.
    """
    listed = narrow_rows(library.list_conversations(user, archived=True))
    counted = _narrow_by_filters(listed, keys)
    count = counted.order_by().values("owner").annotate(count=Count("pk"))
    count = count.annotate(choice=JSONObject(count="count"))
    found = count.values_list(Value("", CharField()), "choice")
    for each in plugins.sources[plugins.ListFilter].values():
        named = (Value(each.name, CharField()), "choice")
        found = each.find_choices(user).values_list(*named).union(found, all=True)
    return found


@prepared_rows()
def _select_deleted(user: Any) -> QuerySet[Conversation]:
    rows = narrow_rows(library.deleted_lately(user))
    rows = rows.only("uuid", "title", "deleted_at")
    return rows[: MAX_UNDO * library.MOST_AT_ONCE]


def group_by_day(rows: Iterable[Conversation]) -> Iterator[ListSection]:
    """Yield pinned rows, then the others by the day of their latest change.

    Days are those of the site's zone. The rows come in this order already.
    """
    today = timezone.localdate()
    for name, section in groupby(rows, key=lambda row: _name_section(row, today)):
        yield ListSection(name, list(section))


def _name_section(row: Conversation, today: date) -> str:
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
