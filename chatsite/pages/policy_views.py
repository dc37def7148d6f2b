"""Choosing how a conversation is remembered: the form, what it has done, and undoing
it. Whoever decides on what somebody else has changed meanwhile is told.
"""

import json
from typing import Any

from asgiref.sync import async_to_sync
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from chatsite.accounts.access import private, with_conversation
from chatsite.protocol import events
from chatsite.turns import runner
from memory import actions
from memory.engine.exceptions import PolicyError
from memory.models import Conversation

from .forms import PolicyForm, UndoPolicyForm, preset_name
from .memory_actions import Notice


@require_POST
@private
@with_conversation
def set_policy(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    """Remember in another way from now on; what was typed stays when it is wrong."""
    form, before = PolicyForm(request.POST), conversation.policy
    notice = None
    if form.is_valid():
        try:
            _set(conversation, form.cleaned_data["policy"], form.cleaned_data["seen"])
            notice = _notice(conversation, before)
        except actions.ActionError as error:
            form = form.seen_again(conversation, str(error))
    if notice and not request.htmx:
        return redirect("conversation-detail", conversation.uuid)
    if notice:
        form = PolicyForm.of(conversation)
    values = {"conversation": conversation, "policy_form": form, "notice": notice}
    # htmx swaps in nothing that came with an error.
    status = 200 if notice or request.htmx else 422
    return render(request, "chat/_policy.html", values, status=status)


@require_POST
@private
@with_conversation
def undo_policy(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    """What was in force before is in force again, unless it was changed since."""
    form, before = UndoPolicyForm(request.POST), conversation.policy
    try:
        if not form.is_valid():
            raise actions.ActionError(_("These settings can't be restored."))
        _set(conversation, form.cleaned_data["policy"], form.cleaned_data["seen"])
        notice = _notice(conversation, before)
    except actions.ActionError as error:
        notice = Notice(str(error), is_error=True)
    except PolicyError as error:
        notice = Notice(error.say(_), is_error=True)
    if not request.htmx:
        return redirect("conversation-detail", conversation.uuid)
    values = {
        "conversation": conversation,
        "policy_form": PolicyForm.of(conversation),
        "notice": notice,
    }
    return render(request, "chat/_policy_undone.html", values)


def _set(conversation: Conversation, policy: dict[str, Any], seen: object) -> None:
    actions.set_policy(conversation, policy, seen=seen)
    async_to_sync(_tell)(conversation.pk)


async def _tell(conversation_id: int) -> None:
    await events.publish(conversation_id, events.Memory(None, "changed"))
    await runner.compact_soon(conversation_id)


def _notice(conversation: Conversation, before: object) -> Notice:
    preset = preset_name(conversation.get_policy().preset)
    text = _("Memory is now “%(preset)s”.") % {"preset": preset}
    undo = reverse("conversation-policy-undo", args=[conversation.uuid])
    values = {
        "policy": json.dumps(before),
        "seen": json.dumps(conversation.policy),
    }
    return Notice(text, undo, values)
