"""Good or bad under a reply, and the dialog that asks why."""

from asgiref.sync import async_to_sync
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _

from chatsite.accounts.access import Values, conversation_fragment, conversation_view
from chatsite.pages.memory_actions import Notice, answer_notice
from chatsite.protocol import events
from memory.models import Conversation
from memory.transcript import ActionError, TextError

from . import services
from .models import Feedback
from .parts import FeedbackEvent, draw_buttons


@conversation_fragment("feedback/_comment.html")
def ask_why(request: HttpRequest, conversation: Conversation, seq: int) -> Values:
    """Return the dialog for a comment."""
    try:
        given = services.find_feedback(conversation, seq)
    except ActionError:
        raise Http404 from None
    return {"seq": seq, "given": given, "max_chars": Feedback.MAX_CHARS}


@conversation_view("POST")
def post_feedback(
    request: HttpRequest, conversation: Conversation, seq: int
) -> HttpResponse:
    """Store `verdict` ("good", "bad", or "" to remove it) and maybe a `comment`."""
    verdict, comment = request.POST.get("verdict", ""), request.POST.get("comment")
    try:
        before, now = services.give_feedback(conversation, seq, verdict, comment)
    except (ActionError, TextError) as error:
        return answer_notice(request, conversation, Notice(str(error), is_error=True))
    if now.verdict != before.verdict:
        turns = conversation.turns.filter(user_message__seq__lt=seq).order_by("-id")
        turn_id = turns.values_list("pk", flat=True).first() or 0
        event = FeedbackEvent(turn_id, seq, now.verdict)
        async_to_sync(events.publish_event)(conversation.pk, event)
    if not request.htmx:
        return redirect("conversation-detail", conversation.uuid)
    undo = reverse("conversation-feedback", args=[conversation.uuid, seq])
    values = {"verdict": before.verdict, "comment": before.comment}
    removed = _("Your feedback on reply #%(seq)s was removed.") % {"seq": seq}
    notice = Notice(_("Saved.") if now.verdict else removed, undo, values)
    response = answer_notice(request, conversation, notice)
    response.write(draw_buttons(conversation, seq, now.verdict, is_fragment=True))
    return response
