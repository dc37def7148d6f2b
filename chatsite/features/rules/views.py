"""The actions of a user on a rule on the page: keep, dismiss or reword it."""

from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _

from chatsite.accounts.access import Values, conversation_fragment
from chatsite.pages.memory_actions import Notice, address_of, memory_action
from chatsite.turns.requests import limit_of, model_of
from memory.engine import budget
from memory.engine.rules.detection import MAX_CHARS
from memory.models import Conversation

from . import services
from .models import Rule
from .store import with_rule_words

State = Rule.State
# Name in the address -> the state that a rule gets.
RULE_STATES = {
    "dismiss": State.DISMISSED,
    "decline": State.DISMISSED,
    "offer": State.OFFERED,
    "unconfirm": State.KEPT,
    "replace": State.REPLACED,
}
UNDO_RULE = {
    State.OFFERED: "offer",
    State.KEPT: "unconfirm",
    State.CONFIRMED: "keep",
    State.DISMISSED: "dismiss",
    State.REPLACED: "replace",
}


@memory_action
def decide_rule(
    request: HttpRequest, conversation: Conversation, *, pk: int, name: str
) -> Notice:
    if name not in ("keep", *RULE_STATES):
        raise Http404
    before = conversation.rules.filter(pk=pk).values_list("state", flat=True).first()
    if name == "keep":
        services.confirm_rule(conversation, pk, room=_find_rule_room(conversation))
        text = _("Saved.")
    else:
        services.set_rule(conversation, pk, RULE_STATES[name])
        text = _("The rule was removed.") if name == "dismiss" else _("Undone.")
    undo = address_of(conversation, "rule", pk=pk, name=UNDO_RULE[State(before)])
    return Notice(text, undo)


@memory_action
def reword_rule(
    request: HttpRequest, conversation: Conversation, *, pk: int, **kwargs: str
) -> Notice:
    text, undo = (request.POST.get(name, "") for name in ("text", "undo"))
    room = _find_rule_room(conversation)
    again = services.reword_rule(conversation, pk, room=room, text=text, undo=undo)
    said = _("Undone.") if undo else _("Saved.")
    return Notice(said, address_of(conversation, "rule-reword", pk=pk), {"undo": again})


def _find_rule_room(conversation: Conversation) -> int:
    return budget.for_rules(limit_of(model_of(conversation)))


@conversation_fragment("rules/_edit.html")
def edit_rule(request: HttpRequest, conversation: Conversation, *, pk: int) -> Values:
    rule = get_object_or_404(with_rule_words(conversation.rules), pk=pk)
    return {"rule": rule, "max_chars": MAX_CHARS}
