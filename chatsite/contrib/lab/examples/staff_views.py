"""The staff page of the examples of a reply, with answers of other models.

All of it requires the right to read, and is recorded in the access log.
"""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from chatsite.review import access_log
from chatsite.review.pages import render_page, review_page
from chatsite.review.rights import Rights
from memory.models import Conversation
from memory.transcript import ActionError, TextError

from . import presenter, services
from .answers import find_job
from .forms import AnswerForm
from .models import Example
from .views import begin_answers

ACTION = "example"


@require_http_methods(["GET", "HEAD", "POST"])
@review_page("content")
def show_reply(
    request: HttpRequest, conversation: Conversation, rights: Rights, seq: int
) -> HttpResponse:
    if request.method == "POST":
        return _act(request, conversation, seq)
    access_log.record_access(request, "view", conversation, f"example #{seq}")
    rows = Example.objects.filter(conversation=conversation, message__seq=seq)
    rows = list(rows.select_related("conversation", "message", "author"))
    own = next((row for row in rows if row.author_id == request.user.pk), None)
    reply = conversation.messages.filter(seq=seq).first()
    return render_page(
        request,
        "examples/staff.html",
        conversation,
        _("Examples of reply #%(seq)s") % {"seq": seq},
        seq=seq,
        said=reply.text if reply else "",
        can_mark=reply is not None and reply.is_reply,
        own=own,
        shown=[presenter.describe_example(row) for row in rows],
        labels=Example.Label.choices,
        max_chars=Example.MAX_CHARS,
        form=AnswerForm(request.user.pk),
        job=find_job(request.user),
    )


def _act(request: HttpRequest, conversation: Conversation, seq: int) -> HttpResponse:
    label, text = request.POST.get("label", ""), request.POST.get("correction", "")
    access_log.record_access(request, ACTION, conversation, f"example #{seq}")
    try:
        if request.POST.get("act") == "answer":
            rows = Example.objects.filter(conversation=conversation, message__seq=seq)
            # An answer to a colleague's example would go with the colleague's account.
            payers = [request.user.pk, conversation.owner_id]
            some = list(rows.filter(author__in=payers).order_by("pk")[:1])
            if error := begin_answers(request, some):
                messages.error(request, error)
        elif request.POST.get("act") == "remove":
            services.unmark_example(conversation, seq, request.user)
        else:
            services.mark_example(conversation, seq, request.user, label, text)
    except (ActionError, TextError) as error:
        messages.error(request, str(error))
    return redirect("review-example", conversation.pk, seq)
