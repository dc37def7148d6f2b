"""The place of each message in the model's view, now or in a past request.

Every message is in exactly one place.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from django.db.models import Case, Count, Q, Value, When

from memory import versions
from memory.models import Conversation, ModelCall, Summary
from memory.ranges import Ranges, in_ranges

from .variation import list_sent_ranges


class PlaceCounts(dict[str, int]):
    """Messages by place. `read`: those that the request has themselves."""

    def __init__(self, counts: Mapping[str, int], read: int) -> None:
        super().__init__(counts)
        self.read = read


def match_read(refs: Mapping[str, Any]) -> Q:
    """Match the messages that a request has themselves, as an account counts them."""
    return Q(in_ranges(list_sent_ranges(refs)), deleted_at=None)


def count_places(
    conversation: Conversation, refs: Mapping[str, Any] | None = None
) -> PlaceCounts:
    """Count the messages in each place of the model's view, for a request of it.

    "window", "summary", "excluded", "superseded", "deleted"; "left" are those that have
    left the window without a summary; "unsent" are those of the window that the next
    request leaves out, as they do not fit; "lost" are those before the window that no
    active summary covers, which must never happen.
    """
    summaries = versions.active_summaries(conversation)
    covered, left = _split_covered(summaries)
    refs = refs or {"window": []}
    place = Case(
        When(deleted_at__isnull=False, then=Value("deleted")),
        When(superseded_at__isnull=False, then=Value("superseded")),
        When(excluded_at__isnull=False, then=Value("excluded")),
        When(covered, then=Value("summary")),
        When(left, then=Value("left")),
        When(seq__lte=versions.last_covered(summaries), then=Value("lost")),
        When(in_ranges(refs.get("left_out", ())), then=Value("unsent")),
        default=Value("window"),
    )
    rows = conversation.messages.order_by().values_list(place)
    found = [*rows.annotate(Count("pk"), read=Count("pk", match_read(refs)))]
    counts = {kind: count for kind, count, _ in found}
    return PlaceCounts(counts, sum(read for *_, read in found))


def count_sent(call: ModelCall) -> PlaceCounts:
    """Count the messages before a reply by their place in its request.

    "window", "newest", "steps", "summary"; "held" are those that the provider held
    instead; "left" are those that had left the window
    without a summary; "unsent" are those that the references do not name: removed from
    the view then or since, or left out as they did not fit.
    """
    conversation, refs = call.conversation, call.refs
    sent = conversation.summaries.filter(version__in=refs["summaries"])
    newest = Q(seq=refs["newest"])
    in_window, in_steps = in_ranges(refs["window"]), in_ranges(refs.get("steps", ()))
    covered, left = _split_covered(sent)
    apart, held = ~in_window & ~newest & ~in_steps, in_ranges(refs.get("held", ()))
    rows = conversation.messages.filter(seq__lt=call.message.seq)
    counts = rows.aggregate(
        window=Count("pk", in_window),
        newest=Count("pk", newest),
        steps=Count("pk", in_steps),
        summary=Count("pk", covered & apart),
        left=Count("pk", left & apart),
        held=Count("pk", held & apart),
        unsent=Count("pk", ~covered & ~left & ~held & apart),
        read=Count("pk", match_read(refs)),
    )
    read = counts.pop("read")
    return PlaceCounts({kind: n for kind, n in counts.items() if n}, read)


def _split_covered(summaries: Iterable[Summary]) -> tuple[Q, Q]:
    """Match the messages that summaries cover, and those that only left the window.

    Messages of a version that was erased since count as summarised.
    """
    spans: tuple[Ranges, Ranges] = ([], [])
    for each in summaries:
        spans[each.is_trimmed].append([each.first_seq, each.last_seq])
    covered, left = map(in_ranges, spans)
    return covered, left
