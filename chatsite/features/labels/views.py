"""Labels on the list: given, taken off, renamed, deleted."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chatsite.accounts.access import conversation_view
from chatsite.pages.list_actions.answers import (
    answering,
    list_action,
    list_again,
    read_conversations,
)
from memory.models import Change, Conversation

from . import services
from .models import Label


def _find_label(request: HttpRequest, pk: int) -> Label:
    return get_object_or_404(services.list_labels(request.user), pk=pk)


@list_action
def give_label(request: HttpRequest, pk: int | None = None) -> HttpResponse:
    """Give conversations a label: an existing one, or one by its name.

    A label of a new name is made.
    """
    found = read_conversations(request)
    if pk is None:
        label = services.find_or_make_label(request.user, request.POST.get("name", ""))
    else:
        label = _find_label(request, pk)
    services.give_labels([label], found)
    Change.record_each(found, services.GIVEN)
    text = ngettext(
        "%(count)s conversation labelled “%(name)s”.",
        "%(count)s conversations labelled “%(name)s”.",
        len(found),
    )
    said = text % {"count": len(found), "name": label.name}
    return list_again(request, said, select="")


@list_action
def take_label(request: HttpRequest, pk: int) -> HttpResponse:
    found, label = read_conversations(request), _find_label(request, pk)
    services.take_labels([label], found)
    Change.record_each(found, services.TAKEN)
    text = ngettext(
        "“%(name)s” was removed from %(count)s conversation.",
        "“%(name)s” was removed from %(count)s conversations.",
        len(found),
    )
    said = text % {"count": len(found), "name": label.name}
    return list_again(request, said, select="")


@list_action
def rename_label(request: HttpRequest, pk: int) -> HttpResponse:
    label = _find_label(request, pk)
    services.rename_label(label, request.POST.get("name", ""))
    return list_again(request, _("Saved."))


@list_action
def delete_label(request: HttpRequest, pk: int) -> HttpResponse:
    label = _find_label(request, pk)
    label.delete()
    text = _("The label “%(name)s” was deleted. Its conversations are still here.")
    return list_again(request, text % {"name": label.name}, label="")


@conversation_view("POST")
@answering
def choose_labels(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    """Change the labels of one conversation as chosen in its menu.

    Only labels that were switched on or off there change; changes made elsewhere
    meanwhile stay.
    """
    known = {str(label.pk): label for label in services.list_labels(request.user)}
    on, had = set(request.POST.getlist("on")), set(request.POST.getlist("had"))
    given = [label for pk, label in known.items() if pk in on - had]
    taken = [label for pk, label in known.items() if pk in had - on]
    if name := request.POST.get("name", "").strip():
        given.append(services.find_or_make_label(request.user, name))
    services.give_labels(given, [conversation])
    services.take_labels(taken, [conversation])
    for labels, action in ((given, services.GIVEN), (taken, services.TAKEN)):
        if labels:
            conversation.changes.create(action=action)
    return list_again(request, _("Saved."))
