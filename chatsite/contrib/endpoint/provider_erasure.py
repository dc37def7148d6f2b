"""Asking the provider to delete replies that it holds, after they were erased here.

OpenAI's API deletes a stored response. Anthropic's has no such request: a thread ends
by itself, some minutes after it was last used.
"""

import logging
from datetime import timedelta
from typing import Any

from channels.db import database_sync_to_async
from django.db.models import QuerySet
from django.db.models.functions import Now

from chatsite.contrib.endpoint.apis import OPENAI_RESPONSES
from chatsite.contrib.endpoint.apis.errors import ApiError
from chatsite.contrib.endpoint.models import ClientRequest, ProviderErasure
from chatsite.turns import runner
from memory.models import ModelCall

logger = logging.getLogger(__name__)

# Requests of one sweep, and how long each may take.
AT_ONCE, SECONDS = 20, 30.0
# A request that fails is sent again after one minute, then after four times as long
# each time: the last one after some four days.
FIRST_WAIT, GROWTH, MAX_TRIES = timedelta(minutes=1), 4, 8
# A response that the provider does not have is deleted, too.
DELETED = (200, 202, 204, 404, 410)


def note_erased(instance: ClientRequest, **_: Any) -> None:
    """Have the provider delete the reply of a request that is being deleted."""
    if not instance.response_id:
        return
    calls = ModelCall.objects.filter(pk=instance.pk)
    calls = calls.filter(refs__client__wire=OPENAI_RESPONSES.name)
    model = calls.values_list("model", flat=True).first()
    if model is not None and OPENAI_RESPONSES.find_upstream(model):
        ProviderErasure.objects.create(response_id=instance.response_id, model=model)


def find_due() -> QuerySet[ProviderErasure]:
    return ProviderErasure.objects.filter(due_at__lte=Now()).order_by("due_at", "pk")


def take_due() -> list[ProviderErasure]:
    """Return some due rows, which no other process takes for a while."""
    taken = []
    for row in find_due()[:AT_ONCE]:
        wait = FIRST_WAIT * GROWTH**row.tries
        rows = ProviderErasure.objects.filter(pk=row.pk, tries=row.tries)
        if rows.update(tries=row.tries + 1, due_at=Now() + wait):
            taken.append(row)
    return taken


async def erase_due() -> None:
    while taken := await database_sync_to_async(take_due)():
        for row in taken:
            is_deleted = await _delete_response(row)
            if is_deleted or row.tries + 1 >= MAX_TRIES:
                await database_sync_to_async(row.delete)()
            if not is_deleted:
                tries = row.tries + 1
                logger.warning("provider did not delete a response: try %s", tries)


async def _delete_response(row: ProviderErasure) -> bool:
    """Return whether the provider no longer has the response."""
    from .relay.upstream import send_upstream

    upstream = OPENAI_RESPONSES.find_upstream(row.model)
    if upstream is None:
        return False
    path = f"{OPENAI_RESPONSES.upstream_path}/{row.response_id}"
    try:
        answer = await send_upstream("DELETE", upstream, path, {}, seconds=SECONDS)
    except ApiError:
        return False
    answer.close()
    return answer.status in DELETED


async def sweep_erasures() -> None:
    """Send all due requests in a separate task, so that no other work waits."""
    runner.spawn_task(erase_due(), "provider erasures")
