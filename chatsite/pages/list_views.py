"""The home page with the list, and actions on one whole conversation of it.

A conversation begins on the home page; the actions are to name, pin, archive, delete
and branch it.
"""

from collections.abc import Callable
from functools import partial
from math import ceil
from uuid import uuid4

from asgiref.sync import async_to_sync
from django.conf import settings
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django_htmx.http import HttpResponseClientRedirect

from chatsite.accounts import preferences
from chatsite.accounts.access import (
    Values,
    conversation_fragment,
    conversation_view,
    private_page,
)
from chatsite.features.attachments import uploads
from chatsite.features.tree import listing
from chatsite.llm import providers
from chatsite.protocol import events
from chatsite.protocol.errors import CommandError
from chatsite.turns import commands, limits, model_access
from chatsite.turns.copying import copies
from memory import library, transcript
from memory.engine import policy
from memory.models import Change, Conversation

from . import demo as demo_conversation
from .forms import BranchForm, NewConversationForm, RenameForm, name_error
from .list_actions import bulk
from .list_actions.answers import list_again, show_list
from .presenters import conversation_list


@private_page("GET")
def show_home(request: HttpRequest) -> HttpResponse:
    if request.htmx:
        return show_list(request, request.GET)
    return _render_home(request)


def _render_home(
    request: HttpRequest, form: NewConversationForm | None = None, refusal: str = ""
) -> HttpResponse:
    """Render the page that a conversation begins on, with the list beside it."""
    preferred = preferences.find_preferences(request.user)
    preset = preferred.preset or policy.DEFAULT_PRESET
    initial = {"preset": preset, "model": preferred.model}
    form = form or NewConversationForm(initial=initial)
    models = model_access.list_choices_for(request.user.pk)
    wanted = form["model"].value()
    values = {
        "form": form,
        "client_id": form["client_id"].value() or uuid4().hex,
        "refusal": refusal,
        "model": wanted if wanted in dict(models) else providers.default_model(),
        "models": models,
        "max_chars": settings.MESSAGE_MAX_CHARS,
        "enter_breaks_line": preferred.enter_breaks_line,
        **conversation_list.make_list(request.user, request.GET),
    }
    return render(request, "chat/home.html", values)


@private_page("POST")
def begin_conversation(request: HttpRequest) -> HttpResponse:
    """Create a conversation, with its first message if one is sent.

    The same message sent twice, as after a lost response, leads to the same
    conversation.
    """
    form = NewConversationForm(request.POST)
    if not form.is_valid():
        wrong = [
            name_error(form[name].label, why[0]) for name, why in form.errors.items()
        ]
        return _refuse_new(request, form, " ".join(wrong))
    chosen = form.cleaned_data
    first, client_id = chosen.pop("first"), chosen.pop("client_id") or uuid4().hex
    try:
        files = uploads.read_upload_ids(request.POST.getlist("attachments"))
    except transcript.TextError as error:
        return _refuse_new(request, form, error.detail)
    if known := transcript.find_begun(request.user, first, client_id, files):
        return lead_to(request, known)
    values = preferences.values_for(request.user, **chosen)
    try:
        rules = commands.detect_message_rules(request.user.pk, first)
    except (transcript.TextError, CommandError) as error:
        return _explain_refusal(request, form, error)

    def make() -> Conversation:
        made = transcript.create_conversation(request.user, **values)
        if "first" in request.POST:
            # The page that opens next starts the reply.
            message = {"text": first, "client_id": client_id}
            commands.submit_message(made, **message, attachments=files, rules=rules)
            limits.admit_turn(request.user.pk)
        return made

    return _lead_to_new(request, form, make)


@private_page("POST")
def begin_demo(request: HttpRequest) -> HttpResponse:
    start = partial(demo_conversation.start_demo, request.user)
    return _lead_to_new(request, None, start, "?guide")


def _lead_to_new(
    request: HttpRequest,
    form: NewConversationForm | None,
    make: Callable[[], Conversation],
    query: str = "",
) -> HttpResponse:
    """Lead to a new conversation, unless there were too many in a short time."""
    try:
        with transaction.atomic():
            conversation = make()
            limits.admit_conversation(request.user.pk)
    except (transcript.TextError, CommandError) as error:
        return _explain_refusal(request, form, error)
    return lead_to(request, conversation, query)


def _explain_refusal(
    request: HttpRequest,
    form: NewConversationForm | None,
    error: transcript.TextError | CommandError,
) -> HttpResponse:
    refused = _refuse_new(request, form, error.detail)
    if request.htmx or isinstance(error, transcript.TextError):
        return refused
    return retry_later(refused, error)


def lead_to(
    request: HttpRequest, conversation: Conversation, query: str = ""
) -> HttpResponse:
    address = reverse("conversation-detail", args=[conversation.uuid]) + query
    return HttpResponseClientRedirect(address) if request.htmx else redirect(address)


def retry_later(response: HttpResponse, error: CommandError) -> HttpResponse:
    """Add the seconds to wait to the response to what a limit refuses."""
    response.status_code = 429
    response["Retry-After"] = str(ceil(error.retry_after or 1))
    return response


def _refuse_new(
    request: HttpRequest, form: NewConversationForm | None, why: str
) -> HttpResponse:
    """Answer why there is no new conversation, beside what was typed."""
    if request.htmx:
        # htmx swaps in nothing that came with an error.
        return render(request, "chat/_error.html", {"code": "refused", "detail": why})
    response = _render_home(request, form, why)
    response.status_code = 400
    return response


@conversation_fragment("chat/_conversation_menu.html")
def show_menu(request: HttpRequest, conversation: Conversation) -> Values:
    """Show the actions on one row, fetched when its menu is opened."""
    return {"row": conversation}


@conversation_view("POST")
def rename_in_list(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    form, error = RenameForm(request.POST), ""
    if not form.is_valid():
        error = form.errors["title"][0]
    elif transcript.rename_conversation(
        conversation, form.cleaned_data["title"], seen=request.POST.get("seen")
    ):
        for each in listing.expand_rows([conversation]):
            if each != conversation:
                transcript.rename_conversation(each, conversation.title)
            event = events.Title(conversation.title)
            async_to_sync(events.publish_event)(each.pk, event)
    else:
        text = _(
            "The title was changed to “%(title)s” elsewhere. Save again to overwrite "
            "it."
        )
        error = text % {"title": conversation.title}
    if request.htmx:
        is_open = request.POST.get("open") in (None, str(conversation.uuid))
        values = {"conversation": conversation, "error": error, "has_header": is_open}
        return render(request, "chat/_renamed.html", values)
    if error:
        return render(request, "chat/refused.html", {"detail": error}, status=409)
    return redirect("conversation-detail", conversation.uuid)


def _make_action(
    do: Callable[[list[Conversation]], None], action: Change.Action
) -> Callable[..., HttpResponse]:
    @conversation_view("POST")
    def view(request: HttpRequest, conversation: Conversation) -> HttpResponse:
        bulk.change_each([conversation], do, action)
        return list_again(request)

    return view


pin = _make_action(library.pin_all, Change.Action.PIN_LISTED)
unpin = _make_action(library.unpin_all, Change.Action.UNPIN_LISTED)
archive = _make_action(library.archive_all, Change.Action.ARCHIVE)
unarchive = _make_action(library.unarchive_all, Change.Action.UNARCHIVE)


@conversation_view("POST")
def delete_in_list(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    """Delete a conversation; its replies stop at once.

    For some minutes it can be restored, unless it was temporary: then it is gone.
    """
    if not conversation.is_temporary:
        return bulk.delete_rows(request, [conversation], library.delete_all)
    answer = bulk.delete_rows(
        request, [conversation], lambda _: library.delete_conversation(conversation)
    )
    library.purge_deleted()
    return answer


@private_page("POST")
def undelete_in_list(request: HttpRequest, uuid: str) -> HttpResponse:
    bulk.restore_listed(request, [uuid])
    if request.htmx:
        return list_again(request)
    return redirect("conversation-detail", uuid)


@conversation_view("POST")
def begin_branch(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    form = BranchForm(request.POST)
    if not form.is_valid():
        raise Http404
    try:
        made = copies.branch_conversation(conversation, form.cleaned_data["seq"])
    except CommandError as error:
        if error.code == "not_found":
            raise Http404 from None
        return refuse_branch(request, error)
    return lead_to(request, made)


def refuse_branch(
    request: HttpRequest, error: transcript.TextError | CommandError
) -> HttpResponse:
    """Answer why there is no branch, and if it was a limit, when to try again."""
    values = {"code": error.code, "detail": error.detail}
    if request.htmx:
        # htmx swaps in nothing that came with an error.
        return render(request, "chat/_error.html", values)
    refused = render(request, "chat/refused.html", values, status=409)
    is_pace = isinstance(error, CommandError) and error.retry_after
    return retry_later(refused, error) if is_pace else refused
