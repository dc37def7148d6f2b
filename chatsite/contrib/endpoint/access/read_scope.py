"""The transcripts and contexts that a key with the scope `read` can fetch.

They are the JSON of the site's pages, for conversations of the key's owner.
"""

import re
from collections.abc import Mapping
from io import BytesIO
from typing import Any
from urllib.parse import parse_qs

from channels.db import database_sync_to_async
from django.core.exceptions import ValidationError
from django.core.handlers.asgi import ASGIRequest
from django.core.serializers.json import DjangoJSONEncoder

from chatsite.contrib.endpoint import keys
from chatsite.contrib.endpoint.apis.errors import ApiError
from chatsite.contrib.endpoint.models import ApiKey
from chatsite.fair_queue import for_drawing
from chatsite.ops.processor_time import account_of_user
from chatsite.pages.presenters import thread_json
from chatsite.review.access_log import LIST_PREFIX, record_access
from memory.models import Conversation, ModelCall

from .rate_limits import check_processor_share, limit_request_rate

READ_ACTION = "key"
PATH = re.compile(r"/v1/conversations/([0-9a-f-]{36})/(transcript|context)\.json")


def _missing() -> ApiError:
    """Return the error for what is missing or another user's."""
    return ApiError(404, "not_found", "There is no such conversation, or no reply.")


def check_may_read(key: ApiKey) -> None:
    """Raise ApiError for a key that may not read."""
    check_processor_share(key)
    if keys.READ not in key.scopes:
        raise ApiError(403, "not_allowed", "This key may not read. Use another one.")


async def answer_reading(key: ApiKey, scope: dict[str, Any], send: Any) -> None:
    """Answer a request for a transcript or a context.

    Raise ApiError.
    """
    check_may_read(key)
    limit_request_rate(key.owner_id, "ENDPOINT_REQUESTS_PER_MINUTE")
    match = PATH.fullmatch(scope["path"])
    if match is None:
        raise _missing()
    reply = parse_qs(scope["query_string"].decode("latin-1")).get("reply", [""])[-1]
    body, found = await for_drawing(_write_reading)(key, *match.groups(), reply)
    await database_sync_to_async(record_reading)(key, scope, found, match[2])
    headers = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def record_reading(
    key: ApiKey, scope: Mapping[str, Any], conversation: Conversation | None, part: str
) -> None:
    """Write into the access log who reads with a key, before anything is sent.

    With a gateway's key that is the gateway's own user, not the one it reads for.
    """
    request = ASGIRequest({**scope, "method": "GET"}, BytesIO())
    request.user = key.reader
    target = f"{LIST_PREFIX}key {key.hint} {part}"
    record_access(request, READ_ACTION, conversation, target, owner_id=key.owner_id)


def _write_reading(
    key: ApiKey, name: str, kind: str, reply: str
) -> tuple[bytes, Conversation]:
    with account_of_user(key.owner_id).timed():
        rows = Conversation.objects.filter(owner_id=key.owner_id, deleted_at=None)
        try:
            conversation = rows.get(uuid=name)
        except (Conversation.DoesNotExist, ValidationError):
            raise _missing() from None
        if kind == "transcript":
            value: Any = {"messages": list(thread_json.list_messages(conversation))}
        else:
            value = _describe_seen(conversation, reply)
        written = DjangoJSONEncoder(ensure_ascii=False).encode(value)
        return written.encode("utf-8", "surrogatepass"), conversation


def _describe_seen(conversation: Conversation, reply: str) -> dict[str, Any]:
    is_number = reply.isdecimal() and reply.isascii() and len(reply) <= 9
    if reply and not is_number:
        raise _missing()
    try:
        return thread_json.describe_context(conversation, int(reply) if reply else None)
    except ModelCall.DoesNotExist:
        raise _missing() from None
