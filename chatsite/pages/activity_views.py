"""What goes on beside the replies: shown, cancelled, dropped."""

from asgiref.sync import async_to_sync
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET, require_POST

from chatsite.accounts.access import private, with_conversation
from chatsite.jobs import activity, queue, tasks
from chatsite.protocol import events
from memory.compaction import lease
from memory.models import Conversation


@require_GET
@private
@with_conversation
def show(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    return _draw(request, conversation)


@require_POST
@private
@with_conversation
def end(request: HttpRequest, conversation: Conversation, *, job: int) -> HttpResponse:
    """Cancel a job that goes on; drop what came of one that has ended."""
    row = get_object_or_404(conversation.jobs, pk=job)
    if row.is_finished:
        row.delete()
    else:
        queue.cancel(row)
    async_to_sync(tasks.tell)(row.kind, conversation.pk, "cancelled")
    return _draw(request, conversation)


@require_POST
@private
@with_conversation
def stop(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    """End the compaction that runs, when the summary that it writes is done."""
    lease.stop(conversation.pk)
    conversation.refresh_from_db()
    async_to_sync(events.publish)(conversation.pk, events.Job("fold", "stopping"))
    return _draw(request, conversation)


def _draw(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    return render(request, "chat/_work.html", activity.template_values(conversation))
