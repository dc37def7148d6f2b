"""Conversations made of others: branches here, imported ones in import_views.py."""

from math import ceil

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from django_htmx.http import HttpResponseClientRedirect

from chatsite.accounts.access import private, with_conversation
from chatsite.jobs import queue
from chatsite.protocol.errors import CommandError
from chatsite.transfer import copies, importing
from memory.models import Conversation

from .forms import BranchForm, ImportForm


@require_POST
@private
@with_conversation
def branch(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    form = BranchForm(request.POST)
    if not form.is_valid():
        raise Http404
    try:
        made = copies.branch(conversation, form.cleaned_data["seq"])
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


@require_http_methods(["GET", "POST"])
@private
def take_in(request: HttpRequest) -> HttpResponse:
    sent = (request.POST, request.FILES) if request.method == "POST" else ()
    form = ImportForm(*sent)
    if sent and form.is_valid():
        try:
            importing.add(request.user, form.cleaned_data["file"])
            return redirect("import")
        except importing.ImportFileError as error:
            form.add_error("file", str(error))
        except queue.JobBusyError:
            form.add_error(
                "file",
                _(
                    "Another import of yours is still running, so this file was not "
                    "imported. Wait until it has finished, then choose the file "
                    "again."
                ),
            )
    values = {"form": form, **_shown(request)}
    status = 422 if form.errors else 200
    return render(request, "chat/import.html", values, status=status)


@require_GET
@private
def progress(request: HttpRequest) -> HttpResponse:
    return render(request, "chat/_import.html", _shown(request))


def _shown(request: HttpRequest) -> dict[str, object]:
    job = queue.latest(importing.KIND, request.user)
    return {"job": job, "outcome": importing.Outcome.of(job) if job else None}
