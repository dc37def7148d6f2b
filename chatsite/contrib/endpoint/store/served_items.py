"""Items of replies of the Responses API, stored by their ids.

A client may name them instead of sending them again, as the provider stores them.

An item is a piece like those that clients send, so it is deleted with its message.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.conf import settings
from django.db.models import Count, Max, QuerySet

from chatsite.contrib.endpoint.addresses import MAX_BODY_BYTES
from chatsite.contrib.endpoint.apis.errors import ApiError, refuse_body
from chatsite.contrib.endpoint.apis.openai_responses import REFERENCE, find_kind
from chatsite.contrib.endpoint.identity.history import read_history
from chatsite.contrib.endpoint.models import BodyPiece
from memory.models import Message

from .bodies import Hollow, hollow_out
from .body_pieces import OF_TEXT, write_out
from .parsed_request import ParsedRequest

# The size of an item without the text of its message. Of a larger one, such as an
# image, only the kind is stored.
MAX_CHARS = 65_536
# Ids that one body may have, and ids in one statement.
MAX_IDS, IDS_PER_STATEMENT = 10_000, 500
MAX_ID_CHARS = BodyPiece._meta.get_field("item_id").max_length

Items = Mapping[str, Any]


def keep_items(message: Message, request: ParsedRequest, output: Sequence[Any]) -> None:
    """Store the items that the client was just sent, with their reply.

    Items without text are stored with the message that they answer.
    """
    if request.body.value.get("store") is False:
        # The provider does not store them, so the client has to send them again.
        return
    rows = BodyPiece.objects.filter(conversation=message.conversation_id)
    last = rows.aggregate(last=Max("number"))["last"] or 0
    written = enumerate(_write_items(message, output), last + 1)
    BodyPiece.objects.bulk_create(
        BodyPiece(
            conversation_id=message.conversation_id,
            number=number,
            message=message,
            **values,
        )
        for number, values in written
    )


def _write_items(message: Message, output: Sequence[Any]) -> Iterator[dict[str, Any]]:
    for item in output:
        item_id = item.get("id") if isinstance(item, dict) else None
        if not _is_item_id(item_id):
            continue
        text = json.dumps(item)
        # No piece of a body has this digest, as an item may be stored shortened.
        digest = hashlib.sha256(f"{item_id} {text}".encode()).digest()
        hollow = hollow_out(text, message.text)
        # Reasoning is not part of the text.
        if find_kind(item) == "reasoning" or len(hollow.text) > MAX_CHARS:
            hollow = Hollow(json.dumps({"type": find_kind(item), "id": item_id}))
        yield {"item_id": item_id, "digest": digest, **hollow._asdict()}


def _is_item_id(value: object) -> bool:
    """Return whether a row can store this id and be found by it."""
    is_short = isinstance(value, str) and 0 < len(value) <= MAX_ID_CHARS
    return is_short and value.isprintable()


def find_items(owner_id: int, request: ParsedRequest) -> Items:
    """Return the items that a request names by id, as this user was sent them.

    An id that two items share is left out. Raise ApiError for an item that was
    deleted, and for one that is, or could be, another user's.
    """
    if not all(isinstance(each, str) for each in request.references):
        detail = "The id of an item has to be a string."
        raise ApiError(400, "invalid_item_id", detail, param="input")
    counts = Counter(request.references)
    if len(counts) > MAX_IDS:
        detail = f"A body may name {MAX_IDS:,} items by their ids. Send fewer."
        raise ApiError(400, "too_many_items", detail, param="input")
    found, size = {}, 0
    every = [*counts]
    for first in range(0, len(every), IDS_PER_STATEMENT):
        ids = every[first : first + IDS_PER_STATEMENT]
        named = BodyPiece.objects.filter(item_id__in=[*filter(_is_item_id, ids)])
        # SQLite takes the index of ids for a statement that has its condition only.
        named = named.exclude(item_id="")
        for item_id, text in _read_items(owner_id, named, ids):
            size += counts[item_id] * len(text)
            if size > MAX_BODY_BYTES:
                raise refuse_body(MAX_BODY_BYTES)
            found[item_id] = json.loads(text)
    return found


def _read_items(
    owner_id: int, named: QuerySet[BodyPiece], ids: Sequence[str]
) -> Iterator[tuple[str, str]]:
    living = named.filter(
        conversation__owner=owner_id,
        conversation__deleted_at=None,
        message__deleted_at=None,
    )
    # Branches have copies of shared items.
    forms = living.order_by().values("item_id")
    forms = forms.annotate(forms=Count("digest", distinct=True), newest=Max("pk"))
    of_user = {each["item_id"]: each for each in forms}
    unknown = [each for each in ids if each not in of_user]
    if settings.ENDPOINT_PROVIDER_IDS == "passed":
        # Then only items of another user, or deleted ones, are refused.
        gone = {*named.values_list("item_id", flat=True)}
        unknown = [each for each in unknown if each in gone]
    if unknown:
        raise _refuse_item(unknown[0])
    newest = [each["newest"] for each in of_user.values() if each["forms"] == 1]
    rows = BodyPiece.objects.filter(pk__in=newest).values_list("item_id", *OF_TEXT)
    for item_id, text in write_out(rows.iterator()):
        if not text:
            # The message was deleted meanwhile.
            raise _refuse_item(item_id)
        yield item_id, text


def _refuse_item(item_id: str) -> ApiError:
    detail = f"Item with id {item_id[:100]!r} not found. Send it whole."
    return ApiError(404, "item_not_found", detail, param="input")


def fill_references(request: ParsedRequest, found: Items) -> ParsedRequest:
    """Return the request as it reads with these items instead of their ids.

    The bytes that are sent stay unchanged.
    """
    value, api = request.body.value, request.api
    named = (found[each] for each in request.references if each in found)
    size = sum(len(json.dumps(each)) for each in named)
    items = [
        found.get(item.get("id"), item) if find_kind(item) == REFERENCE else item
        for item in value[api.list_name]
    ]
    value = {**value, api.list_name: items}
    history = read_history(api.name, value)
    if not history.messages:
        # It named only reasoning items.
        return replace(request, named_bytes=size)
    body = request.body._replace(value=value)
    return replace(request, body=body, history=history, named_bytes=size)
