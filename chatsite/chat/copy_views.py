"""Conversations made of others: branches here, imported ones in import_views.py."""

from math import ceil

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST
from django_htmx.http import HttpResponseClientRedirect

from memory.models import Conversation

from . import copying
from .access import private, with_conversation
from .errors import CommandError
from .forms import BranchForm


@require_POST
@private
@with_conversation
def branch(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    form = BranchForm(request.POST)
    if not form.is_valid():
        raise Http404
    try:
        made = copying.branch(conversation, form.cleaned_data["seq"])
    except CommandError as error:
        if error.code == "not_found":
            raise Http404 from None
        return _refuse(request, error)
    if request.htmx:
        return HttpResponseClientRedirect(
            reverse("conversation-detail", args=[made.uuid])
        )
    return redirect("conversation-detail", made.uuid)


def _refuse(request: HttpRequest, error: CommandError) -> HttpResponse:
    values = {"code": error.code, "detail": error.detail}
    if request.htmx:
        # htmx swaps in nothing that came with an error.
        return render(request, "chat/_error.html", values)
    response = render(request, "chat/refused.html", values, status=429)
    response["Retry-After"] = str(ceil(error.retry_after or 1))
    return response
