"""Which tools the model of a conversation may call, chosen on its page."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from chatsite.accounts.access import conversation_view
from chatsite.llm import dialects
from chatsite.tools import registry
from chatsite.turns.requests import model_of
from memory import transcript
from memory.models import Conversation

from .memory_actions import Notice, address_of, memory_action


@conversation_view("GET")
def choose(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    """The tools there are, with those that are on."""
    values = {
        "conversation": conversation,
        "tools": registry.available().values(),
        "missing": registry.missing(conversation.tools),
        "is_refused": not dialects.of(model_of(conversation)).has_tools,
    }
    return render(request, "chat/_tools.html", values)


@memory_action
def set_tools(request: HttpRequest, conversation: Conversation) -> Notice:
    """Turn on the tools named in the form and turn off the others. One that is on
    already stays, even if its server is away."""
    before, answered_late = conversation.tools, conversation.answers_late
    known = {*registry.available(), *before}
    wanted = [*request.POST.getlist("tool"), *request.POST.get("tools", "").split(",")]
    names = [name for name in dict.fromkeys(wanted) if name in known]
    transcript.set_tools(
        conversation, names, answers_late="answers_late" in request.POST
    )
    text = _("The model may call no tools.")
    if names:
        values = {"names": ", ".join(names)}
        text = _("From the next message on the model may call: %(names)s.") % values
    undo = {"tools": ",".join(before)}
    if answered_late:
        undo["answers_late"] = "on"
    return Notice(text, address_of(conversation, "set-tools"), undo)
