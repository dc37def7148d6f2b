"""Acts that ask first, on one conversation or on what was chosen in the list: a page
with what it is about, then the same act on each.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from memory.actions import ActionError
from memory.models import Conversation

from ..pages import desk_view
from ..rights import Rights, rights_of
from . import apply, erasing
from .forms import PurgeForm, RebuildForm, ReviewForm, code_of
from .views import gone, posted_uuids

MAX_AT_ONCE = 50


@dataclass(frozen=True, slots=True)
class Many:
    """An act that asks first: the right it takes, its form, what it does to each."""

    need: str
    title: str
    button: str
    form: Callable[..., forms.Form]
    do: Callable[..., str]


ACTS = {
    "rebuild": Many(
        "content",
        gettext_lazy("Rebuild from the transcript"),
        gettext_lazy("Rebuild"),
        lambda uuids, *data: RebuildForm(*data),
        apply.rebuild,
    ),
    "review": Many(
        "content",
        gettext_lazy("Mark reviewed"),
        gettext_lazy("Mark reviewed"),
        lambda uuids, *data: ReviewForm(*data),
        apply.review,
    ),
    "purge": Many(
        "purge",
        gettext_lazy("Erase for good"),
        gettext_lazy("Erase for good"),
        PurgeForm,
        apply.purge,
    ),
}


def ask(
    request: HttpRequest,
    name: str,
    rows: Sequence[Conversation],
    form: forms.Form | None = None,
) -> HttpResponse:
    """The page before the act; with a form that was not right, what is wrong."""
    act, uuids = ACTS[name], [row.uuid for row in rows]
    values: dict[str, Any] = {
        **admin.site.each_context(request),
        "opts": Conversation._meta,
        "title": act.title,
        "name": name,
        "act": act,
        "rows": rows,
        "form": form or act.form(uuids),
    }
    if name == "purge":
        values["counted"] = [(row, erasing.count(row)) for row in rows]
        values["copies"] = sum(erasing.copies(row).count() for row in rows)
        values["code"] = code_of(uuids)
    status = 422 if form else 200
    return render(request, "admin/desk/ask.html", values, status=status)


@desk_view("purge")
def purge_page(
    request: HttpRequest, conversation: Conversation, rights: Rights
) -> HttpResponse:
    return ask(request, "purge", [conversation])


@require_POST
def _perform(request: HttpRequest, name: str) -> HttpResponse:
    rights, act = rights_of(request.user), ACTS.get(name)
    if act is None:
        raise Http404
    if not (rights.metadata and getattr(rights, act.need)):
        raise PermissionDenied
    uuids = posted_uuids(request)
    rows = _rows(uuids)
    if not rows:
        return gone(request)
    form = act.form(uuids, request.POST)
    if not form.is_valid():
        return ask(request, name, rows, form)
    values = {key: form.cleaned_data[key] for key in form.fields if key != "code"}
    _each(request, act, rows, values)
    return redirect("admin:memory_conversation_changelist")


perform = admin.site.admin_view(never_cache(_perform))


def _rows(uuids: Sequence[UUID]) -> list[Conversation]:
    rows = Conversation.objects.select_related("owner").filter(uuid__in=uuids)
    return list(rows.order_by("pk")[:MAX_AT_ONCE])


def _each(
    request: HttpRequest, act: Many, rows: list[Conversation], values: dict[str, str]
) -> None:
    done = []
    for row in rows:
        try:
            done.append(act.do(request, row, **values))
        except ActionError as error:
            messages.error(request, f"{row}: {error}")
        except Conversation.DoesNotExist:
            messages.warning(request, _("%(name)s is gone already.") % {"name": row})
    if len(done) == 1:
        messages.success(request, done[0])
    elif done:
        text = ngettext(
            "%(count)s conversation: done.", "%(count)s conversations: done.", len(done)
        )
        messages.success(request, text % {"count": len(done)})
