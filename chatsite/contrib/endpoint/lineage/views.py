"""The page that explains a client's requests.

It says which conversation each continued, and why. Its forms join two conversations and
undo it.
"""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from chatsite.accounts.access import conversation_view
from chatsite.contrib.endpoint.models import ClientConversation
from memory import transcript
from memory.models import Conversation

from . import joining

BIG = 2**63 - 1


class WhyForm(forms.Form):
    """The query of the page: a reply, and where the list begins."""

    reply = forms.IntegerField(min_value=1, max_value=2**31 - 1, required=False)
    before = forms.IntegerField(min_value=1, max_value=BIG, required=False)


@conversation_view("GET")
def show_why(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    return _draw_page(request, conversation)


def _draw_page(
    request: HttpRequest, conversation: Conversation, error: str = ""
) -> HttpResponse:
    rows = ClientConversation.objects.select_related("conversation")
    own = get_object_or_404(rows, pk=conversation.pk)
    # Imported late: it loads everything that reads clients' requests.
    from chatsite.contrib.endpoint.provider_reports import summaries

    from . import explanations

    form = WhyForm(request.GET)
    if not form.is_valid():
        raise Http404
    rows = explanations.list_requests(conversation, form.cleaned_data["before"])
    seq = form.cleaned_data["reply"]
    row = explanations.find_request(conversation, seq) if seq else None
    if row is None and rows and not form.cleaned_data["before"]:
        row = rows[0]
    values: dict[str, Any] = {
        "conversation": conversation,
        "own": own,
        "asked": seq,
        "shown": explanations.explain_request(conversation, row) if row else None,
        "requests": rows[: explanations.MAX_REQUESTS],
        "has_more": len(rows) > explanations.MAX_REQUESTS,
        "summaries": summaries.list_summaries(conversation),
        "related": explanations.list_related(own),
        "offered": [] if own.joined_id else joining.list_offered(own),
        "error": error,
    }
    return render(request, "endpoint/why.html", values, status=422 if error else 200)


@conversation_view("POST")
def join(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    uuid = forms.UUIDField(required=False)
    try:
        earlier = transcript.get_for(
            request.user, uuid.clean(request.POST.get("earlier"))
        )
        joining.join_conversations(conversation, earlier)
    except (Conversation.DoesNotExist, forms.ValidationError):
        error = _("Choose another conversation of a client.")
        return _draw_page(request, conversation, error)
    except joining.JoinError as refusal:
        return _draw_page(request, conversation, str(refusal))
    messages.success(request, _("The two are joined. No message was changed."))
    return redirect("endpoint-why", conversation.uuid)


@conversation_view("POST")
def separate(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    try:
        joining.separate_conversation(conversation)
    except joining.JoinError:
        raise Http404 from None
    messages.success(request, _("The two are apart again."))
    return redirect("endpoint-why", conversation.uuid)
