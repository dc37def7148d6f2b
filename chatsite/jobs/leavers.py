"""The sweep that ends all work of users whose account was deactivated.

Their sessions and sockets end by the rules of chatsite/accounts/sessions.py, their
links by those of the links' app; no new turn of theirs begins (turns/lifecycle.py),
and nothing is paid for beside replies (turns/limits.py).
"""

from channels.db import database_sync_to_async
from django.db.models import QuerySet

from chatsite import plugins
from chatsite.protocol import events
from chatsite.turns import commands
from chatsite.turns.models import Job, Turn
from memory.models import Conversation

from . import queue


def find_open_turns() -> QuerySet[Turn]:
    return Turn.objects.filter(
        state__one_of=Turn.UNFINISHED, conversation__owner__is_active=False
    )


def find_open_jobs() -> QuerySet[Job]:
    return Job.objects.filter(
        state__in=Job.UNFINISHED, cancel_requested_at=None, user__is_active=False
    )


def end_turns_of_leavers() -> list[int]:
    """End all unfinished turns of leavers; return the ids of running ones."""
    rows = Conversation.objects.filter(pk__in=find_open_turns().values("conversation"))
    running = []
    for conversation in rows:
        running += commands.end_unfinished_turns(conversation)
    return running


def cancel_jobs_of_leavers() -> None:
    queue.JOBS.cancel_rows(find_open_jobs())


async def stop_turns() -> None:
    for turn_id in await database_sync_to_async(end_turns_of_leavers)():
        await events.hint_stop(turn_id)


JOBS = [
    plugins.BackgroundJob(stop_turns, due=find_open_turns),
    plugins.BackgroundJob(
        database_sync_to_async(cancel_jobs_of_leavers), due=find_open_jobs
    ),
]
