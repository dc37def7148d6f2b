"""A conversation as one value, to keep and to import again."""

import json
from collections.abc import Iterator
from typing import Any

from django.contrib.auth import get_user_model
from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import F

from chatsite import hooks
from chatsite.pages.presenters.thread_json import list_messages, list_summaries
from chatsite.turns import requests
from chatsite.turns.tool_loop import result_files
from memory import bundle, context, prompts
from memory.models import Conversation, Prompt

FORMAT = 1
CALL_FIELDS = (
    *("purpose", "message__seq", "summary__version", "refs", "sha256", "model"),
    *("provider", "tokens_estimated", "tokens_input", "tokens_cached", "tokens_output"),
    *("first_token_ms", "total_ms", "attempts", "error", "created_at"),
)


TOOL_CALL_FIELDS = (
    *("place", "call_id", "name", "state", "error", "allowed", "answered_at"),
    *("reason", "expires_at", "deadline_at", "created_at", "started_at"),
    "finished_at",
)


def list_tool_calls(conversation: Conversation) -> Iterator[dict[str, Any]]:
    """How far each call of a tool is; what was asked and answered is in messages."""
    rows = conversation.tool_calls.order_by("pk").values(
        *TOOL_CALL_FIELDS,
        seq=F("request__seq"),
        result_seq=F("result__seq"),
        late_seq=F("late_result__seq"),
        by=F(f"answered_by__{get_user_model().USERNAME_FIELD}"),
    )
    for row in rows:
        yield {"answered_by": row.pop("by") or "", **row}


def export_thread(conversation: Conversation) -> dict[str, Any]:
    """Both views to keep: every message, every summary, every request by reference."""
    calls = list(conversation.model_calls.order_by("id").values(*CALL_FIELDS))
    hashes = {name for call in calls for name in prompts.named_in(call["refs"])}
    return {
        "format": FORMAT,
        "conversation": {
            "uuid": conversation.uuid,
            "title": conversation.title,
            "created_at": conversation.created_at,
            "policy": conversation.get_policy().dump(),
            "own_policy": conversation.policy,
            "model": requests.model_of(conversation),
            "temperature": conversation.temperature,
            "system_prompt": context.system_prompt(conversation),
            "labels": list(conversation.labels.values_list("name", flat=True)),
        },
        "messages": list(list_messages(conversation)),
        "tool_calls": list(list_tool_calls(conversation)),
        "summaries": list(list_summaries(conversation)),
        "model_calls": calls,
        "rules": bundle.read_rules(conversation),
        "files": result_files.export(conversation.result_files),
        "prompts": {
            prompt.sha256: prompt.text
            for prompt in Prompt.objects.filter(pk__in=hashes)
        },
        **{each.name: each.read(conversation) for each in hooks.export_sections},
    }


def dump_json(value: dict[str, Any]) -> str:
    return json.dumps(value, cls=DjangoJSONEncoder, ensure_ascii=False)
