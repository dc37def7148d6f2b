"""A conversation as one value, to keep and to import again."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder

from chatsite.pages.presenters.thread_json import list_messages, list_summaries
from chatsite.turns import requests
from memory import context, prompts, transcript
from memory.models import Conversation, Prompt

from .. import left_out as rows_left_out
from ..tables import exported_lists, exported_values
from ..thread_format import FORMAT, ModelCall


def export_thread(conversation: Conversation) -> dict[str, Any]:
    """Both views to keep: every message, every summary, every request by reference."""
    requested = conversation.model_calls.order_by("id")
    calls = list(requested.values(*ModelCall.model_fields))
    hashes = {name for call in calls for name in prompts.named_in(call["refs"])}
    return {
        "format": FORMAT,
        "conversation": {
            "uuid": conversation.uuid,
            "title": conversation.title,
            "title_set_by": conversation.title_set_by,
            "title_seqs": transcript.list_title_seqs(conversation),
            "created_at": conversation.created_at,
            "policy": conversation.get_policy().dump(),
            "own_policy": conversation.policy,
            "model": requests.model_of(conversation),
            "temperature": conversation.temperature,
            "system_prompt": context.find_system_prompt(conversation),
            **{each.name: each.read(conversation) for each in exported_values()},
        },
        "messages": list(list_messages(conversation)),
        "summaries": list(list_summaries(conversation)),
        "model_calls": calls,
        "prompts": {
            prompt.sha256: prompt.text
            for prompt in Prompt.objects.filter(pk__in=hashes)
        },
        "left_out": rows_left_out.count_left_of_conversation(conversation.pk),
        **{each.name: each.read(conversation) for each in exported_lists()},
    }


def dump_export(value: dict[str, Any]) -> str:
    return json.dumps(value, cls=DjangoJSONEncoder, ensure_ascii=False)


async def write_threads(
    head: dict[str, Any], ids: Iterable[int], read: Callable[[int], Awaitable[str]]
) -> AsyncIterator[str]:
    """Yield a document of several conversations, one after the other.

    `read` returns "" for one that was deleted meanwhile.
    """
    yield dump_export(head)[:-1] + ', "conversations": ['
    separator = "\n"
    for pk in ids:
        if text := await read(pk):
            yield separator + text
            separator = ",\n"
    yield "\n]}\n"
