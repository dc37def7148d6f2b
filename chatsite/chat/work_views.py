"""The lines of work beside the replies: drawn again, cancelled, dropped."""

from asgiref.sync import async_to_sync
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET, require_POST

from memory import fold_lease
from memory.models import Conversation

from . import events, job_tasks, jobs, work
from .access import private, with_conversation


@require_GET
@private
@with_conversation
def show(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    return _lines(request, conversation)


@require_POST
@private
@with_conversation
def end(request: HttpRequest, conversation: Conversation, *, job: int) -> HttpResponse:
    """Cancel a job that goes on; drop what came of one that has ended."""
    row = get_object_or_404(conversation.jobs, pk=job)
    if row.is_finished:
        row.delete()
    else:
        jobs.cancel(row)
    async_to_sync(job_tasks.tell)(row.kind, conversation.pk, "cancelled")
    return _lines(request, conversation)


@require_POST
@private
@with_conversation
def stop(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    """End the fold that runs, when the summary that it writes is done."""
    fold_lease.stop(conversation.pk)
    conversation.refresh_from_db()
    async_to_sync(events.publish)(conversation.pk, events.Job("fold", "stopping"))
    return _lines(request, conversation)


def _lines(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    return render(request, "chat/_work.html", work.values(conversation))
