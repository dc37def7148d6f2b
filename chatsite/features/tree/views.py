"""Branches on the page: made of an edited message, shown as a map, deleted."""

from asgiref.sync import async_to_sync
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from chatsite.accounts import account
from chatsite.accounts.access import Values, conversation_fragment, conversation_view
from chatsite.pages.list_views import lead_to, refuse_branch
from chatsite.protocol.errors import CommandError
from chatsite.turns import commands
from memory import transcript
from memory.models import Change, Conversation
from memory.transcript import TextError

from . import services
from .forms import EditForm, OpenForm
from .map import draw_map


@conversation_view("POST")
def make_branch(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    """Say a message in other words, and lead to the branch that does."""
    form = EditForm(request.POST)
    if not form.is_valid():
        raise Http404
    try:
        made = services.edit_as_branch(
            conversation,
            seq=form.cleaned_data["seq"],
            text=request.POST.get("text", "").replace("\r\n", "\n"),
            client_id=request.POST.get("client_id", ""),
        )
    except (TextError, CommandError) as error:
        return refuse_branch(request, error)
    return lead_to(request, made)


@conversation_fragment("tree/_map.html")
def show_map(request: HttpRequest, conversation: Conversation) -> Values:
    return {"rows": draw_map(conversation) if conversation.tree else []}


@conversation_view("POST")
def drop_branch(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    """Delete this branch alone; for some minutes the list can bring it back."""
    form = OpenForm(request.POST)
    if conversation.tree is None or not form.is_valid():
        raise Http404
    try:
        listed = services.delete_branch(conversation)
    except CommandError as error:
        values = {"conversation": conversation, "said": error.detail}
        values["rows"] = draw_map(conversation)
        return render(request, "tree/_map.html", values)
    conversation.changes.create(action=Change.Action.REMOVE)
    running = commands.stop_all(conversation)
    async_to_sync(account.end_all)(conversation.pk, running)
    try:
        shown = transcript.get_for(request.user, form.cleaned_data["open"])
    except Conversation.DoesNotExist:
        # It was deleted here, or in another tab.
        return lead_to(request, listed)
    said = _("The branch was deleted. In the list you can undo this for 10 minutes.")
    values = {"conversation": shown, "rows": draw_map(shown), "said": said}
    return render(request, "tree/_map.html", values)
