"""The request that a model was sent for a reply, and what was left out of it.

The request is proved by its hash. Nothing here depends on the protocol or on addresses.
"""

import hashlib
import json
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, islice
from typing import Any

from chatsite.contrib.endpoint.store.rebuilding import KEY, read_sent_bytes
from chatsite.turns import requests
from memory.images.image_source import without_bytes
from memory.models import Conversation, ModelCall
from memory.ranges import in_ranges, merge_ranges
from memory.view import rebuilding
from memory.view.variation import list_sent_ranges

from .transcripts import MAX_CHARS, NotReadableError

# Limits of one answer: stretches of messages, and messages sent in part.
MAX_STRETCHES, MAX_NUMBERS = 200, 500
# Why a message was not sent word for word.
SUMMARISED = "summarised"
LEFT = "left the window without a summary"
NO_ROOM = "did not fit"
NOT_SENT = "not sent by the client"
HELD = "held by the provider"
DELETED, REPLACED, HIDDEN = "deleted since", "replaced", "hidden from the model"


def find_call(conversation: Conversation, reply: int) -> ModelCall:
    """Return the model call of a reply.

    Raise NotReadableError.
    """
    call = requests.reply_call(conversation, reply)
    if call is None:
        raise NotReadableError(f"No request is known for a reply #{reply}.")
    return call


def describe_request(call: ModelCall, first: int) -> tuple[dict[str, Any], int | None]:
    """Return a part of the request, and the character where the next begins."""
    text, digest, is_whole = _read_text_and_hash(call)
    last = first + MAX_CHARS
    value = {
        "model": call.model,
        "at": call.created_at,
        "sha256": call.sha256,
        "is_proved": digest == call.sha256,
        "is_text_of_hash": is_whole and digest == call.sha256,
        "tokens": {
            "estimated": call.tokens_estimated,
            "reported": call.tokens_input,
            "cached": call.tokens_cached,
            "output": call.tokens_output,
        },
        "summaries": call.refs["summaries"],
        "characters": len(text),
        "from_character": first,
        "text": text[first:last],
    }
    return value, last if last < len(text) else None


def _read_text_and_hash(call: ModelCall) -> tuple[str, str, bool]:
    """Return the JSON that was sent, its hash, and whether all of it is shown.

    Of a client that is the body, of the site's own requests the messages, without the
    bytes of images.
    """
    if KEY in call.refs:
        raw = read_sent_bytes(call)
        return raw.decode("utf-8", "replace"), hashlib.sha256(raw).hexdigest(), True
    built = rebuilding.rebuild_context(call)
    shown = without_bytes(built.wire)
    text = json.dumps(shown, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return text, built.sha256, shown == built.wire


def describe_left_out(call: ModelCall, first: int) -> tuple[dict[str, Any], int | None]:
    """Return the messages that were not sent word for word, as stretches.

    They are those from `first` up to the reply. The second value is where the next part
    begins.
    """
    refs = call.refs
    found = [*islice(_list_stretches(call, first), MAX_STRETCHES + 1)]
    following = found.pop()["first"] if len(found) > MAX_STRETCHES else None
    rows = call.conversation.messages.filter(in_ranges(list_sent_ranges(refs)))
    rows = rows.exclude(sent_text="").order_by("-seq")
    shorter = rows.values_list("seq", flat=True)
    cut = {seq for seq, *_ in refs.get("shortened", ())}
    value = {
        "left_out": found,
        "sent_in_part": sorted({*shorter[:MAX_NUMBERS], *cut})[-MAX_NUMBERS:],
        "recalled": sorted(refs["recalled"])[:MAX_NUMBERS],
        "summaries": refs["summaries"],
    }
    return value, following


def _list_stretches(call: ModelCall, first: int) -> Iterator[dict[str, Any]]:
    """Yield runs of messages that were left out for the same reason."""
    end = call.message.seq if call.message else call.conversation.next_seq
    rows = call.conversation.messages.filter(seq__gte=first, seq__lt=end)
    columns = ("seq", "deleted_at", "superseded_at", "excluded_at")
    values = rows.order_by("seq").values_list(*columns).iterator()
    why = _make_judge(call)
    for reason, group in groupby(values, key=why):
        seqs = [seq for seq, *_ in group]
        if reason:
            stretch = {"first": seqs[0], "last": seqs[-1], "messages": len(seqs)}
            yield stretch | dict(zip(("why", "version"), reason, strict=False))


def _make_judge(call: ModelCall) -> Callable[[Sequence[Any]], tuple[Any, ...] | None]:
    """Return a function that returns why a row was left out; None: it was sent."""
    refs, is_of_client = call.refs, KEY in call.refs
    sent = merge_ranges(list_sent_ranges(refs))
    is_sent = _make_finder((*span, True) for span in sent)
    is_cut = _make_finder((*span, True) for span in refs.get("cut", ()))
    is_held = _make_finder((*span, True) for span in refs.get("held", ()))
    versions = call.conversation.summaries.filter(version__in=refs["summaries"])
    covers = _make_finder(
        (
            *(row.first_seq, row.last_seq),
            (LEFT,) if row.is_trimmed else (SUMMARISED, row.version),
        )
        for row in versions
    )

    def judge(row: Sequence[Any]) -> tuple[Any, ...] | None:
        seq, deleted, superseded, excluded = row
        if is_sent(seq):
            return None
        if deleted:
            return (DELETED,)
        if covered := covers(seq):
            return covered
        if superseded:
            return (REPLACED,)
        if excluded:
            return (HIDDEN,)
        if is_held(seq):
            return (HELD,)
        return (NO_ROOM,) if is_cut(seq) or not is_of_client else (NOT_SENT,)

    return judge


def _make_finder(spans: Iterable[tuple[int, int, Any]]) -> Callable[[int], Any]:
    """Return a function that finds the value of the span around a number.

    Spans must not overlap.
    """
    ordered = sorted(spans, key=lambda span: span[:2])
    firsts = [span[0] for span in ordered]

    def find(seq: int) -> Any:
        at = bisect_right(firsts, seq) - 1
        return ordered[at][2] if at >= 0 and seq <= ordered[at][1] else None

    return find
