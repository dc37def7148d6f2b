"""What an action on the list answers with: the list as the page shows it, and a line
that says what was done, or why it was not.
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
from django.views.decorators.http import require_POST
from django_htmx.http import reswap, retarget

from chatsite.accounts.access import private_page
from memory import library
from memory.models import Conversation

from ..presenters import conversation_list


class ListError(ValueError):
    """Something that can't be done to these conversations; the message says why."""


def list_action(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """A view that changes the list, or says why it does not. What is missing, deleted
    or another user's is a 404, and nothing is changed."""
    return require_POST(private_page(answering(view)))


def answering(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """The view, with an answer for what it raises."""

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
    """What takes an action on several conversations back: the name of an address, which
    gets their ids again."""

    name: str
    rows: Sequence[Conversation]


def show_list(
    request: HttpRequest, data: QueryDict, said: str = "", undo: Undo | None = None
) -> HttpResponse:
    """The list for htmx; `data` says which part, `said` what was done, and `undo` how
    it is undone."""
    values = conversation_list.make_list(request.user, data)
    values |= {"said": said, "said_undo": undo}
    return render(request, "chat/_list_answer.html", values)


def list_again(
    request: HttpRequest, said: str = "", undo: Undo | None = None, **changed: str
) -> HttpResponse:
    """The list as the page shows it that sent the request, with another label or the
    like where these have `changed`."""
    if not request.htmx:
        return redirect("conversation-list")
    data = request.POST.copy()
    for name, value in changed.items():
        data[name] = value
    return show_list(request, data, said, undo)


def refuse(request: HttpRequest, why: str) -> HttpResponse:
    """Why nothing was changed. What was typed and chosen stays on the page."""
    if not request.htmx:
        values = {"detail": why}
        return render(request, "chat/refused.html", values, status=409)
    # htmx swaps in nothing that came with an error.
    shown = render(request, "chat/_list_error.html", {"detail": why})
    return reswap(retarget(shown, "#list-said"), "innerHTML")


def read_uuids(request: HttpRequest) -> list[UUID]:
    """The conversations that an action is about. Raises ListError for none and for too
    many, Http404 for what is no id."""
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
    """The user's conversations that an action is about."""
    try:
        return library.pick_conversations(request.user, read_uuids(request))
    except Conversation.DoesNotExist:
        raise Http404 from None
