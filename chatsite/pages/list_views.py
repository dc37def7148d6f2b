"""The list and what people do to whole conversations: name, pin, archive, delete.

Each act answers htmx with the list drawn anew, and a browser without it with a
redirect.
"""

from collections.abc import Callable

from asgiref.sync import async_to_sync
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST
from django_htmx.http import HttpResponseClientRedirect

from chatsite.accounts import account, preferences
from chatsite.accounts.access import private, with_conversation
from chatsite.protocol import events
from chatsite.turns import lifecycle
from memory import library, transcript
from memory.engine import policy
from memory.models import Conversation

from .forms import NewConversationForm, RenameForm
from .presenters import conversation_list


@require_GET
@private
def index(request: HttpRequest) -> HttpResponse:
    library.purge()
    shown = conversation_list.listed(request.user, request.GET)
    if request.htmx:
        return render(request, "chat/_conversation_list.html", shown)
    preset = preferences.of(request.user).preset or policy.DEFAULT_PRESET
    form = NewConversationForm(initial={"preset": preset})
    return render(request, "chat/list.html", {"form": form, **shown})


@require_GET
@private
@with_conversation
def menu(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    """What can be done to one row, fetched when somebody opens it."""
    return render(request, "chat/_row_menu.html", {"row": conversation})


@require_POST
@private
@with_conversation
def rename(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    why = _rename(conversation, request.POST)
    if not why:
        event = events.Title(conversation.title)
        async_to_sync(events.publish)(conversation.pk, event)
    here = request.POST.get("open") in (None, str(conversation.uuid))
    values = {"conversation": conversation, "error": why, "has_header": here}
    if request.htmx:
        return render(request, "chat/_renamed.html", values)
    if why:
        return render(request, "chat/refused.html", {"detail": why}, status=409)
    return redirect("conversation-detail", conversation.uuid)


def _rename(conversation: Conversation, data: QueryDict) -> str:
    """Why it keeps its name; "" = it has the new one."""
    form = RenameForm(data)
    if not form.is_valid():
        return form.errors["title"][0]
    if transcript.rename(
        conversation, form.cleaned_data["title"], seen=data.get("seen")
    ):
        return ""
    return _(
        "The title was changed to “%(title)s” elsewhere. Save again to overwrite it."
    ) % {"title": conversation.title}


def _act(do: Callable[[Conversation], None]) -> Callable[..., HttpResponse]:
    @require_POST
    @private
    @with_conversation
    def view(request: HttpRequest, conversation: Conversation) -> HttpResponse:
        do(conversation)
        return _list(request)

    return view


pin = _act(library.pin)
unpin = _act(library.unpin)
archive = _act(library.archive)
unarchive = _act(library.unarchive)


@require_POST
@private
@with_conversation
def delete(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    """Gone at once, with its replies stopped; for some minutes it can come back."""
    library.delete(conversation)
    async_to_sync(account.end_all)(conversation.pk, lifecycle.stop_all(conversation))
    if request.POST.get("open") == str(conversation.uuid):
        return HttpResponseClientRedirect(reverse("conversation-list"))
    return _list(request)


@require_POST
@private
def undelete(request: HttpRequest, uuid: str) -> HttpResponse:
    try:
        conversation = library.restore(request.user, uuid)
    except Conversation.DoesNotExist:
        raise Http404 from None
    if request.htmx:
        return _list(request)
    return redirect("conversation-detail", conversation.uuid)


def _list(request: HttpRequest) -> HttpResponse:
    """The list as the page that asked shows it."""
    if not request.htmx:
        return redirect("conversation-list")
    shown = conversation_list.listed(request.user, request.POST)
    return render(request, "chat/_conversation_list.html", shown)
