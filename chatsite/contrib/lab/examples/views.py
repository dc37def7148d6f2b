"""Pages of a user's examples.

The dialog that marks a reply, the list and its download, the page of each
example, and answers of other models.
"""

import re

from asgiref.sync import async_to_sync
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django_htmx.http import HttpResponseClientRefresh

from chatsite.accounts.access import (
    Values,
    conversation_fragment,
    conversation_view,
    private_page,
)
from chatsite.jobs import queue, tasks
from chatsite.pages.memory_actions import Notice, answer_notice
from chatsite.protocol.errors import CommandError
from memory.models import Conversation
from memory.transcript import ActionError, TextError

from . import answers, exporting, presenter, services
from .forms import AnswerForm
from .models import Example

PAGE_EXAMPLES = 25
# The key of an example in addresses.
KEY = re.compile(r"[1-9][0-9]{0,8}", re.ASCII)


@conversation_fragment("examples/_mark.html")
def ask_correction(
    request: HttpRequest, conversation: Conversation, seq: int
) -> Values:
    """Show the dialog that marks a reply as an example."""
    try:
        example = services.find_example(conversation, seq, request.user)
    except ActionError:
        raise Http404 from None
    return {
        "seq": seq,
        "example": example,
        "labels": Example.Label.choices,
        "max_chars": Example.MAX_CHARS,
    }


@conversation_view("POST")
def post_example(
    request: HttpRequest, conversation: Conversation, seq: int
) -> HttpResponse:
    """Mark a reply with a `label` and a `correction`; unmark it without a label."""
    label, text = request.POST.get("label", ""), request.POST.get("correction", "")
    try:
        before = services.find_example(conversation, seq, request.user)
        if label:
            services.mark_example(conversation, seq, request.user, label, text)
        else:
            services.unmark_example(conversation, seq, request.user)
    except (ActionError, TextError) as error:
        return answer_notice(request, conversation, Notice(str(error), is_error=True))
    if not request.htmx:
        return redirect("examples")
    done = _("Reply #%(seq)s is an example.") if label else _("#%(seq)s is no example.")
    undo = reverse("conversation-example-post", args=[conversation.uuid, seq])
    values = {"label": before.label if before else ""}
    values["correction"] = before.correction if before else ""
    return answer_notice(
        request, conversation, Notice(done % {"seq": seq}, undo, values)
    )


@private_page("GET")
def list_examples(request: HttpRequest) -> HttpResponse:
    return _draw_list(request, _read_label(request.GET.get("label", "")))


def _draw_list(request: HttpRequest, label: str, error: str = "") -> HttpResponse:
    rows = presenter.with_beginnings(services.list_own_examples(request.user, label))
    page = Paginator(rows, PAGE_EXAMPLES).get_page(request.GET.get("page"))
    values = {
        "page": page,
        "rows": presenter.describe_listed(list(page)),
        "label": label,
        "labels": Example.Label.choices,
        "form": AnswerForm(request.user.pk),
        "most": answers.MOST_AT_ONCE,
        "error": error,
        "job": answers.find_job(request.user),
    }
    return render(request, "examples/list.html", values, status=409 if error else 200)


def _read_label(text: str) -> str:
    return text if text in Example.Label.values else ""


@private_page("GET")
def show_example_page(request: HttpRequest, pk: int) -> HttpResponse:
    rows = services.list_own_examples(request.user).select_related(
        "conversation", "message"
    )
    example = get_object_or_404(rows, pk=pk)
    values = {
        "shown": presenter.describe_example(example),
        "form": AnswerForm(request.user.pk),
        "job": answers.find_job(request.user),
    }
    return render(request, "examples/example.html", values)


@private_page("GET")
def download_examples(request: HttpRequest) -> HttpResponseBase:
    form = request.GET.get("form", "")
    if form not in exporting.FORMS:
        raise Http404
    rows = services.list_own_examples(request.user, request.GET.get("label", ""))
    return exporting.send_examples(rows, form)


@private_page("POST")
def post_answers(request: HttpRequest) -> HttpResponse:
    """Answer one `example`, or the newest ones of the list of a `label`."""
    label = _read_label(request.POST.get("label", ""))
    rows = services.list_own_examples(request.user, label)
    address = reverse("examples")
    if key := request.POST.get("example", ""):
        if not KEY.fullmatch(key):
            raise Http404
        rows = rows.filter(pk=int(key))
        address = reverse("example", args=[key])
    elif label:
        address = f"{address}?{urlencode({'label': label})}"
    if error := begin_answers(request, list(rows[: answers.MOST_AT_ONCE])):
        return _draw_list(request, label, error)
    return redirect(address)


def begin_answers(request: HttpRequest, examples: list[Example]) -> str:
    """Start the job that a form asks for; return the reason if it cannot, else ""."""
    model, preset = request.POST.get("model", ""), request.POST.get("preset", "")
    try:
        claim = answers.start_answers(request.user, examples, model, preset)
    except ActionError as error:
        return str(error)
    except CommandError as error:
        return error.detail
    async_to_sync(tasks.start_job)(claim, answers.KIND, None)
    return ""


@private_page("GET")
def show_answers_progress(request: HttpRequest) -> HttpResponse:
    """Show the progress of the answers; reload the page once they are finished."""
    job = answers.find_job(request.user)
    if job is None or job.is_finished:
        return HttpResponseClientRefresh()
    return render(request, "examples/_progress.html", {"job": job})


@private_page("POST")
def cancel_answers(request: HttpRequest) -> HttpResponse:
    if job := answers.find_job(request.user):
        queue.JOBS.cancel_rows(request.user.jobs.filter(pk=job.pk))
    return redirect("examples")
