"""Every address of the admin, whoever made it, with a row that exists behind each."""

import re
from dataclasses import dataclass
from html import unescape

from django.contrib import admin
from django.urls import get_resolver, reverse

# What the desk's own pages ask for beside the conversation; a new name belongs here.
ARGUMENTS = {
    "pk": lambda row: row.pk,
    "seq": lambda row: 2,
    "version": lambda row: 1,
    "experiment": lambda row: row.experiments.first().pk,
    "name": lambda row: "purge",
}
# What takes more than the right to see numbers, where the view does not say so itself.
NEEDS = {
    "desk-export": ("export",),
    "desk-purge": ("purge",),
    "desk-acts": ("purge",),
    "desk-rebuild": ("content",),
    "desk-restore": ("content",),
    "desk-review": ("content",),
}
MOST_LINKS = 8
# Not pages, or the end of the walker's own session.
ELSEWHERE = {"logout", "jsi18n", "autocomplete", "view_on_site", "login"}
# Leads to the account's page for it.
ELSEWHERE |= {"password_change"}


@dataclass(frozen=True)
class Place:
    name: str
    url: str
    needs: tuple = ()

    @property
    def is_own(self):
        """A page that the desk made, not one of Django's five for each table."""
        return self.name.startswith("desk-")


def patterns():
    """Name, arguments and view of each named pattern."""
    resolver = get_resolver()
    admins = [
        part
        for part in resolver.url_patterns
        if getattr(part, "namespace", None) == "admin"
    ]
    todo = [(admins[0], ())]
    while todo:
        part, names = todo.pop()
        names = (*names, *part.pattern.regex.groupindex)
        if hasattr(part, "url_patterns"):
            todo += [(inner, names) for inner in part.url_patterns]
        elif part.name and part.name not in ELSEWHERE:
            yield part.name, names, part.callback


def places(conversations):
    """All of them: lists, pages of the first and the last row, the desk's own."""
    found = []
    for name, names, view in patterns():
        needs = NEEDS.get(name) or getattr(view, "needs", ())
        for values in values_for(name, names, conversations):
            found.append(Place(name, reverse(f"admin:{name}", kwargs=values), needs))
    return found


def values_for(name, names, conversations):
    if not names:
        return [{}]
    if names == ("app_label",):
        return [{"app_label": app} for app in ("memory", "chat", "desk", "auth")]
    if names[0] in ("object_id", "id"):
        return [{names[0]: pk} for pk in keys(model_of(name))]
    found = [{key: ARGUMENTS[key](row) for key in names} for row in conversations]
    return list({str(values): values for values in found}.values())


def links(place, text):
    """Where a page of the desk leads to other views of itself: tabs, pages, filters."""
    if not place.is_own:
        return []
    own = re.escape(place.url)
    found = re.findall(rf'href="(?:{own})?(\?[^"#]+)', text)
    return [place.url + unescape(query) for query in dict.fromkeys(found)][:MOST_LINKS]


def model_of(name):
    """The table that one of Django's own patterns is about."""
    for model in admin.site._registry:
        if name.startswith(f"{model._meta.app_label}_{model._meta.model_name}_"):
            return model
    raise AssertionError(f"{name}: which row shall be looked at?")


def keys(model):
    rows = list(model._base_manager.order_by("pk").values_list("pk", flat=True))
    return sorted({rows[0], rows[-1]}, key=str) if rows else []
