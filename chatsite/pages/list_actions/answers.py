"""Responses to actions on the list: the list as the page shows it, and a message.

The message says what was done, or why it was not.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any
from uuid import UUID

from django.db import IntegrityError
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django_htmx.http import reswap, retarget

from chatsite.accounts.access import private_page
from memory import library
from memory.models import Conversation

from ..presenters import conversation_list


class ListError(ValueError):
    """An action that these conversations do not allow; the message says why."""


def list_action(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Make a view that changes the list, or answers why it does not.

    Missing, deleted and other users' conversations are a 404, and nothing is changed.
    """
    return private_page("POST")(answering(view))


def answering(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Make a view that answers the errors that it raises."""

    @wraps(view)
    def acted(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return view(request, *args, **kwargs)
        except ListError as error:
            return refuse(request, str(error))
        except IntegrityError:
            # What it is about was erased in between.
            raise Http404 from None

    return acted


@dataclass(frozen=True, slots=True)
class Undo:
    """The undo of an action on several conversations.

    It is the name of an address, which gets their ids again.
    """

    name: str
    rows: Sequence[Conversation]


def show_list(
    request: HttpRequest, data: QueryDict, said: str = "", undo: Undo | None = None
) -> HttpResponse:
    """Render the list for htmx.

    `data` says which part, `said` what was done, and `undo` how it is undone.
    """
    values = conversation_list.make_list(request.user, data)
    values |= {"said": said, "said_undo": undo}
    return render(request, "chat/_list_answer.html", values)


def list_again(
    request: HttpRequest, said: str = "", undo: Undo | None = None, **changed: str
) -> HttpResponse:
    """Render the list as the page shows it that sent the request.

    `changed` replaces parameters of the address, such as its label.
    """
    if not request.htmx:
        return redirect("conversation-list")
    data = request.POST.copy()
    for name, value in changed.items():
        data[name] = value
    return show_list(request, data, said, undo)


def refuse(request: HttpRequest, why: str) -> HttpResponse:
    """Answer why nothing was changed; the page keeps what was typed and chosen."""
    if not request.htmx:
        values = {"detail": why}
        return render(request, "chat/refused.html", values, status=409)
    # htmx swaps in nothing that came with an error.
    shown = render(request, "chat/_list_error.html", {"detail": why})
    return reswap(retarget(shown, "#list-said"), "innerHTML")


def read_uuids(request: HttpRequest) -> list[UUID]:
    """Return the ids of an action's conversations.

    Raises ListError for none and for too many, Http404 for an invalid id.
    """
    sent = set(request.POST.getlist("conversation"))
    if not sent:
        raise ListError(_("Choose conversations first."))
    if len(sent) > library.MOST_AT_ONCE:
        text = _("Choose at most %(limit)s conversations at a time.")
        raise ListError(text % {"limit": library.MOST_AT_ONCE})
    try:
        return [UUID(each) for each in sent]
    except ValueError:
        raise Http404 from None


def read_conversations(request: HttpRequest) -> list[Conversation]:
    """Return the user's conversations that an action is about."""
    try:
        return library.pick_conversations(request.user, read_uuids(request))
    except Conversation.DoesNotExist:
        raise Http404 from None
