"""The actions of the desk: parts of the next request are switched off and on again."""

from asgiref.sync import async_to_sync
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from chatsite.accounts.access import Values, conversation_fragment, conversation_view
from chatsite.protocol import events
from chatsite.protocol.errors import CommandError
from chatsite.turns import commands, variations
from memory.actions import EditChoice
from memory.models import Change, Conversation
from memory.transcript import ActionError
from memory.view.variation import MOST_OFF, is_part_key

from .memory_actions import Notice, answer_notice
from .memory_views import draw_draft


@conversation_fragment("chat/_context.html", "POST")
def switch_part(request: HttpRequest, conversation: Conversation) -> Values:
    """Send the part of this key with the next requests, or leave it out.

    `part` is a key of memory/view/variation.py; `on` says which of both. 409 with a
    sentence says why not.
    """
    try:
        on = bool(request.POST.get("on"))
        switch(conversation, request.POST.get("part", ""), on=on)
    except (ActionError, CommandError) as error:
        return answer_notice(request, conversation, Notice(str(error), is_error=True))
    async_to_sync(events.publish_change)(conversation.pk)
    return draw_draft(request, conversation)


@conversation_fragment("chat/_context.html", "POST")
def undo_switches(request: HttpRequest, conversation: Conversation) -> Values:
    """Send all parts again."""
    variations.switch_off(conversation, ())
    async_to_sync(events.publish_change)(conversation.pk)
    return draw_draft(request, conversation)


@conversation_view("POST")
def keep_switches(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    """Leave out what is off from all requests that follow; hide messages that are."""
    off = variations.find_off(conversation)
    if not off:
        refusal = Notice(_("Nothing is switched off."), is_error=True)
        return answer_notice(request, conversation, refusal)
    # A message that can't be hidden stays off, as the other parts do.
    rest = tuple(key for key in off if not _hide_message(conversation, key))
    variations.switch_off(conversation, rest, stays=True)
    async_to_sync(events.publish_change)(conversation.pk)
    text = _("Kept for this conversation. What is off stays off until you turn it on.")
    return answer_notice(request, conversation, Notice(text))


def _hide_message(conversation: Conversation, key: str) -> bool:
    """Hide the message of this key from the model; return whether it was hidden."""
    kind, _dash, seq = key.partition("-")
    if kind != "message":
        return False
    try:
        commands.hide_message(conversation, int(seq), edited=EditChoice.ASK)
    except ActionError:
        return False
    conversation.changes.create(action=Change.Action.LEAVE_OUT, seq=seq)
    return True


@transaction.atomic
def switch(conversation: Conversation, key: str, *, on: bool) -> None:
    """Switch one part of the next request; raise ActionError and CommandError."""
    commands.check_writable(conversation)
    if not is_part_key(key):
        raise ActionError(_("There is no such part of the request."))
    # Switches of two tabs come one after the other.
    rows = Conversation.objects.select_for_update().filter(pk=conversation.pk)
    conversation.next_request = rows.values_list("next_request", flat=True).get()
    off = dict.fromkeys(variations.find_off(conversation))
    if on:
        off.pop(key, None)
    else:
        off[key] = None
    if len(off) > MOST_OFF:
        words = _("%(limit)s parts are off already. Turn some on first.")
        raise ActionError(words % {"limit": MOST_OFF})
    variations.switch_off(conversation, tuple(off))
