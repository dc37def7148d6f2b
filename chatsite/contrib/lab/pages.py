"""Responses of the lab's pages to actions on a reply."""

from asgiref.sync import async_to_sync
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from chatsite.pages.memory_actions import Notice, answer_notice
from chatsite.protocol import events
from memory.models import Conversation


def refuse(
    request: HttpRequest, conversation: Conversation, error: Exception
) -> HttpResponse:
    """Respond with the error's message: as a notice for htmx, else as plain text."""
    if request.htmx:
        return answer_notice(request, conversation, Notice(str(error), is_error=True))
    return HttpResponse(str(error), status=409, content_type="text/plain")


def redraw(conversation: Conversation) -> None:
    """Make every open page of the conversation draw its right pane again."""
    changed = events.Memory(None, "changed")
    async_to_sync(events.publish_event)(conversation.pk, changed)


def say_changed(
    request: HttpRequest, conversation: Conversation, notice: Notice
) -> HttpResponse:
    redraw(conversation)
    if request.htmx:
        return answer_notice(request, conversation, notice)
    return redirect("conversation-detail", conversation.uuid)
