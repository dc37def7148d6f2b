"""Pages and JSON of comparisons and of the costs of turns, for the owner."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from asgiref.sync import async_to_sync
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _

from chatsite.accounts.access import conversation_view
from chatsite.llm.pricing import has_prices
from chatsite.pages.views import respond_with_json
from chatsite.protocol import events
from memory import transcript
from memory.models import Conversation
from memory.models.change import Change

from ..stored_requests import UNREADABLE
from . import presenter, turns
from .forms import RepliesForm
from .sent_requests import (
    RequestComparison,
    UnknownReplyError,
    find_newest_reply,
    read_compared,
)


class ComparisonError(ValueError):
    """The requests cannot be compared; the message says why, and what to do."""


def compare_replies(
    conversation: Conversation, query: Mapping[str, Any]
) -> RequestComparison:
    """Read the two requests that an address names. Raises ComparisonError."""
    form = RepliesForm(query)
    if not form.is_valid():
        text = _("The numbers of replies are whole ones, such as reply=12&with=10.")
        raise ComparisonError(text)
    seq = form.cleaned_data["reply"] or find_newest_reply(conversation)
    if seq is None:
        text = _("This conversation has no reply yet whose request is known.")
        raise ComparisonError(text)
    try:
        return read_compared(conversation, seq, form.cleaned_data["with"])
    except UnknownReplyError as error:
        text = _(
            "No request of a reply #%(seq)s is known. Choose a reply that was written "
            "here."
        )
        raise ComparisonError(text % {"seq": error.seq}) from None
    except UNREADABLE:
        # The references of an old import can have any shape.
        text = _("One of these requests can't be rebuilt. Choose another reply.")
        raise ComparisonError(text) from None


@conversation_view("GET")
def show_comparison(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    values: dict[str, Any] = {"conversation": conversation, "has_prices": has_prices()}
    try:
        compared = compare_replies(conversation, request.GET)
    except ComparisonError as error:
        values |= {"error": str(error), "reply": request.GET.get("reply", "")}
        values |= {"other": request.GET.get("with", "")}
        return render(request, "compare/page.html", values, status=404)
    values |= {"shown": presenter.present_page(compared), "reply": compared.b.seq}
    values["other"] = compared.a.seq if compared.a else ""
    return render(request, "compare/page.html", values)


@conversation_view("GET")
def comparison_json(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    try:
        compared = compare_replies(conversation, request.GET)
    except ComparisonError as error:
        return respond_with_json({"detail": str(error)}, status=404)
    return respond_with_json(
        presenter.comparison_to_json(presenter.present_figures(compared))
    )


@conversation_view("GET")
def show_history(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    """Show the costs of the latest turns.

    `off` names tools that were just removed, with a button to add them again.
    """
    history = turns.read_cost_history(conversation)
    taken = [
        name
        for name in request.GET.getlist("off")
        if name in history.offered and name not in conversation.tools
    ]
    values = {
        "conversation": conversation,
        "history": history,
        "strip": list(turns.draw_strip(history)),
        "parts": [(name, turns.PARTS[name]) for name in history.parts],
        "rows": [
            {
                "turn": turn,
                "counts": [turn.count_tokens(name) for name in history.parts],
            }
            for turn in reversed(history.turns)
        ],
        "taken": taken,
        "has_prices": has_prices(),
    }
    return render(request, "compare/history.html", values)


@conversation_view("GET")
def history_json(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    history = turns.read_cost_history(conversation)
    return respond_with_json(turns.history_to_json(history))


@conversation_view("POST")
def change_offered(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    """Remove tools (`off`), or add tools again that its turns had (`on`)."""
    off, on = request.POST.getlist("off"), request.POST.getlist("on")
    known = turns.read_cost_history(conversation).offered if on else []
    names = [name for name in conversation.tools if name not in off]
    names += [name for name in on if name in known and name not in names]
    if names != conversation.tools:
        transcript.change_tools(
            conversation, names, answers_late=conversation.answers_late
        )
        conversation.changes.create(action=Change.Action.TOOLS)
        async_to_sync(events.publish_change)(conversation.pk)
    query = urlencode([("off", name) for name in off])
    address = reverse("conversation-costs", args=[conversation.uuid])
    return redirect(f"{address}?{query}" if query else address)
