"""The actions of users on facts: below their message, and on their own page."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from chatsite.accounts.access import Values, conversation_fragment, private_page
from chatsite.pages.memory_actions import Notice, address_of, memory_action
from memory.engine.facts.detection import MAX_CHARS
from memory.models import Conversation
from memory.transcript import ActionError, TextError

from . import services
from .store import MOST_KEPT, facts_of


@memory_action
def decide_fact(
    request: HttpRequest, conversation: Conversation, *, pk: int, name: str
) -> Notice:
    """Keep or dismiss what this conversation offers, or undo that."""
    if not conversation.facts.filter(pk=pk).exists():
        raise ActionError(_("This no longer exists. Reload the page."))
    owner = conversation.owner_id
    if name == "remember-here":
        services.keep_fact(owner, pk, is_local=True)
        text = _("Remembered.")
    elif name == "remember":
        text = _name_replaced(_("Remembered."), services.keep_fact(owner, pk))
    elif name == "not-remember":
        services.dismiss_fact(owner, pk)
        text = _("It is not remembered.")
    elif name == "offer-fact":
        services.offer_fact(owner, pk)
        return Notice(_("Undone."))
    else:
        raise Http404
    undo = address_of(conversation, "fact", pk=pk, name="offer-fact")
    return Notice(text, undo)


@conversation_fragment("facts/_edit.html")
def edit_fact(request: HttpRequest, conversation: Conversation, *, pk: int) -> Values:
    fact = get_object_or_404(facts_of(conversation.owner_id), pk=pk)
    return {"fact": fact, "max_chars": MAX_CHARS}


@memory_action
def reword_fact(
    request: HttpRequest, conversation: Conversation, *, pk: int, **kwargs: str
) -> Notice:
    """Reword a fact of the next request, in all conversations, or undo that."""
    text, undo = (request.POST.get(name, "") for name in ("text", "undo"))
    again, replaced = services.reword_fact(
        conversation.owner_id, pk, text=text, undo=undo
    )
    said = _("Undone.") if undo else _name_replaced(_("Remembered."), replaced)
    return Notice(said, address_of(conversation, "fact-reword", pk=pk), {"undo": again})


def _name_replaced(text: str, replaced: list[str]) -> str:
    if not replaced:
        return text
    quoted = ", ".join(f"“{words}”" for words in replaced)
    return text + " " + _("It replaces %(words)s.") % {"words": quoted}


@private_page("GET")
def show_facts(request: HttpRequest) -> HttpResponse:
    values = services.list_facts(request.user.pk)
    limits = {"max_chars": MAX_CHARS, "most": MOST_KEPT}
    return render(request, "facts/page.html", {**values, **limits})


@private_page("POST")
def change_fact(request: HttpRequest, pk: int, name: str) -> HttpResponse:
    """Keep, reword, dismiss or erase one, from the page that has them all."""
    owner = request.user.pk
    try:
        if name == "erase":
            services.erase_fact(owner, pk)
            said = _("Erased. Requests that were sent with it are kept without it.")
        elif name == "dismiss":
            services.dismiss_fact(owner, pk)
            said = _("It is not remembered.")
        elif name in ("keep", "reword"):
            text = request.POST.get("text", "") if name == "reword" else None
            replaced = services.keep_fact(owner, pk, text=text)
            said = _name_replaced(_("Remembered."), replaced)
        else:
            raise Http404
    except (ActionError, TextError) as error:
        messages.error(request, str(error))
    else:
        messages.success(request, said)
    return redirect("facts")
