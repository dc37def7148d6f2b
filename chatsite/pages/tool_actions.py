"""What people do with calls of tools from the page, where no socket is open: allow one
or not, wait no longer for a result.
"""

from asgiref.sync import async_to_sync
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from chatsite.accounts.access import conversation_view
from chatsite.protocol import events
from chatsite.protocol.errors import CommandError
from chatsite.turns import consent, late_results
from memory.models import Conversation


@conversation_view("POST")
def answer(request: HttpRequest, conversation: Conversation, call: int) -> HttpResponse:
    """Takes `allow` ("true" or "false"), `digest` and maybe a `reason`."""
    try:
        given = events.read_consent({**request.POST.dict(), "call": call})
        answered = consent.answer(
            conversation,
            given.call,
            request.user,
            allowed=given.allow,
            digest=given.digest,
            reason=str(given.reason),
        )
    except CommandError as error:
        return _refuse(error)
    async_to_sync(late_results.tell_answer)(answered)
    return redirect("conversation-detail", conversation.uuid)


@conversation_view("POST")
def cancel(request: HttpRequest, conversation: Conversation, call: int) -> HttpResponse:
    try:
        cancelled = late_results.cancel(conversation, call)
    except CommandError as error:
        return _refuse(error)
    async_to_sync(late_results.tell)(cancelled)
    return redirect("conversation-detail", conversation.uuid)


def _refuse(error: CommandError) -> HttpResponse:
    status = 404 if error.code == "not_found" else 409
    return HttpResponse(error.detail, status=status, content_type="text/plain")
