"""The provider's own summaries of a conversation: stored, read and checked."""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from chatsite.contrib.endpoint.apis import find_api_by_name
from chatsite.contrib.endpoint.apis.provider_report import COMPACTION, ProviderReport
from chatsite.contrib.endpoint.identity.canonical import (
    UnreadableHistoryError,
    write_canonical,
)
from chatsite.contrib.endpoint.identity.history import GENESIS, read_reply
from chatsite.contrib.endpoint.identity.history import Message as CanonicalMessage
from chatsite.contrib.endpoint.lineage.notes import list_unsent
from chatsite.contrib.endpoint.models import ClientMessage, ProviderSummary
from chatsite.contrib.endpoint.store.parsed_request import ParsedRequest
from chatsite.contrib.endpoint.store.rebuilding import KEY, read_sent_body
from chatsite.contrib.endpoint.store.request_store import StoredRequest, make_hashes
from chatsite.turns.models import Turn
from memory.engine.summaries import dropped
from memory.models import Conversation, ModelCall, read_langchain

# Longer ones are not stored: a client has them, and their length is no summary.
MAX_CHARS = 1_000_000
# Summaries and details of one page, and summaries that one is compared with.
MAX_SHOWN, MAX_DETAILS, MAX_COMPARED = 5, 300, 200


@dataclass(frozen=True, slots=True)
class ShownSummary:
    """A provider's summary with the check over it.

    `text` is "" where only the provider can read it, or where a message that it
    covers was deleted.
    """

    row: ProviderSummary
    text: str
    dropped: list[dropped.DroppedDetail]
    unsupported: list[str]

    @property
    def is_erased(self) -> bool:
        return not self.row.block

    @property
    def is_too_long(self) -> bool:
        return len(self.text) > dropped.MAX_CHECKED_CHARS


def keep_of_turn(
    stored: StoredRequest, turn: Turn, report: ProviderReport, written: int | None
) -> None:
    """Store the summaries of a turn, and the forms in which they come back alone."""
    request, conversation = stored.sent.request, stored.conversation
    alone = None if turn.reply else written
    last, call_id = stored.reply_seq - 1, stored.claim.call_id
    keep_summaries(conversation, request, report, last, alone, call_id)
    said = {"content": report.made, "output": report.made}
    # The client goes on with the summary after its question, or without that.
    for base in () if turn.reply else (stored.chain, GENESIS):
        with suppress(UnreadableHistoryError):
            made = read_reply(request.api.name, said, base)
            keep_forms(conversation.pk, stored.position - 1, made)


def keep_summaries(
    conversation: Conversation,
    request: ParsedRequest,
    report: ProviderReport,
    last_seq: int,
    alone: int | None,
    call_id: int | None = None,
) -> None:
    """Store the summaries of a reply, which cover all messages up to `last_seq`.

    `alone` are the tokens of a reply without any other text.
    """
    blocks = [json.dumps(each, ensure_ascii=False) for each in report.made]
    ProviderSummary.objects.bulk_create(
        ProviderSummary(
            conversation=conversation,
            call_id=call_id,
            api=request.api.name,
            provider=request.api.name_upstream(request.model),
            block=block,
            last_seq=last_seq,
            tokens=report.compaction_tokens or alone,
        )
        for block in blocks
        if len(block) <= MAX_CHARS
    )


def keep_forms(
    conversation: int, position: int, messages: Iterable[CanonicalMessage]
) -> None:
    """Store these as forms of the message at this position.

    A request that ends with one of them continues the conversation there.
    """
    rows = ClientMessage.objects.filter(conversation=conversation, position=position)
    row = rows.filter(is_again=False).select_related("message").first()
    marks = {"is_again": True, "is_served": True}
    for message in messages if row else ():
        make_hashes(message, position, row.message, row.owner_id, **marks).save()


def list_summaries(conversation: Conversation) -> list[ShownSummary]:
    """Return the last summaries of the conversation, newest first, each checked."""
    rows = conversation.provider_summaries.order_by("-pk")[:MAX_SHOWN]
    return [_check_summary(row) for row in rows]


def _check_summary(row: ProviderSummary) -> ShownSummary:
    text = read_text(row.block)
    shown = ShownSummary(row, text, [], [])
    if not text or shown.is_too_long:
        return shown
    rows = row.conversation.messages.filter(
        superseded_at=None, deleted_at=None, seq__lte=row.last_seq
    )
    messages = read_langchain(rows.order_by("seq"))
    shown.unsupported.extend(dropped.find_invented(text, (), messages))
    shown.dropped.extend(dropped.find_dropped(messages, text)[:MAX_DETAILS])
    return shown


def read_text(block: str) -> str:
    """Return the text of a summary; "" where only the provider can read it."""
    content = json.loads(block).get("content") if block else ""
    return content if isinstance(content, str) else ""


def count_changed_blocks(call: ModelCall) -> int:
    """Return how many summaries of a request are not as the provider sent them.

    They share something with one that it sent; others came from elsewhere.
    """
    sent = [*_list_sent_blocks(call)] if call.refs[KEY]["wire"] != "chat" else []
    if not sent:
        return 0
    # A history with a changed block may have begun a conversation of its own.
    rows = ProviderSummary.objects.filter(
        conversation__owner=call.conversation.owner_id
    )
    blocks = rows.exclude(block="").order_by("-pk").values_list("block", flat=True)
    known = [_list_parts(json.loads(block)) for block in blocks[:MAX_COMPARED]]
    parts = [*map(_list_parts, sent)]
    return sum(
        each not in known and any(each & other for other in known) for each in parts
    )


def _list_sent_blocks(call: ModelCall) -> Iterable[dict[str, Any]]:
    api = find_api_by_name(call.refs[KEY]["wire"])
    for message in api.list_sent(read_sent_body(call)):
        content = message.get("content")
        blocks = content if isinstance(content, list) else ()
        for each in (message, *blocks):
            if isinstance(each, dict) and each.get("type") == COMPACTION:
                yield each


def _list_parts(block: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Return what the provider wrote into a block, by name."""
    names = ("content", "signature", "encrypted_content", "tool_changes")
    return {(n, write_canonical(block[n])) for n in names if block.get(n)}


def count_read_elsewhere(call: ModelCall, sent: list[list[int]]) -> tuple[int, str]:
    """Return how many messages only an earlier provider can read, and its name.

    They are those that its last summary covers and that this request, which went to
    another provider, does not have.
    """
    rows = call.conversation.provider_summaries.filter(created_at__lt=call.created_at)
    last = rows.order_by("-pk").first()
    own = call.refs[KEY]["wire"], call.provider
    if last is None or (last.api, last.provider) == own:
        return 0, ""
    unsent = list_unsent(call.conversation, sent, seq__lte=last.last_seq)
    return len(unsent), last.provider or last.api
