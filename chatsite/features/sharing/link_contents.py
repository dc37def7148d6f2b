"""The contents of a link, as queries: no other module decides them.

A link shows the conversation as it was when the link was made: its messages up to a
number, in the wording of that time. Later messages, edits and regenerated replies are
not on it. Messages that its owner deletes or hides from the model disappear at once.
"""

from collections.abc import Collection, Mapping
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import Count, Q, QuerySet

from chatsite.turns.requests import has_request
from memory import transcript
from memory.models import Conversation, Message, ModelCall
from memory.ranges import in_ranges, list_noted, to_ranges
from memory.view.variation import list_sent_ranges

from .models import Share


def title_of_share(share: Share) -> str:
    """Return the title of the conversation.

    A title that may quote a message which is not shown is replaced by the beginning of
    the first shown one.
    """
    row = share.conversation
    is_own = row.title_set_by == Conversation.TitleSource.USER
    of = transcript.list_title_seqs(row) or ()
    if is_own or (of and shown_messages(share).filter(seq__in=of).count() == len(of)):
        return row.title
    said = shown_messages(share).filter(role=Message.Role.USER).order_by("seq").first()
    words = " ".join(transcript.words_for_title(said).split()) if said else ""
    most = transcript.TITLE_CHARS
    return words if len(words) <= most else words[: most - 1] + "…"


def shown_messages(share: Share) -> QuerySet[Message]:
    """Return the messages that a link shows.

    Without the model's view, calls of tools and their results are left out: they belong
    to it.
    """
    rows = share.conversation.messages.filter(_is_shown(share))
    if share.with_view:
        return rows
    return rows.exclude(role=Message.Role.TOOL).exclude(text="")


def hidden_numbers(share: Share) -> QuerySet[Message, int]:
    """Return only the numbers of messages that their author has hidden since."""
    rows = share.conversation.messages.filter(_stood_then(share), deleted_at=None)
    rows = rows.exclude(excluded_at=None).exclude(role=Message.Role.TOOL)
    return rows.values_list("seq", flat=True)


def shown_results(share: Share) -> QuerySet[Message]:
    """Return the results whose sources the shown replies cite.

    Each source is a web address; nothing else of the results is on a link without the
    model's view.
    """
    rows = share.conversation.messages.filter(_is_shown(share))
    return rows.filter(role=Message.Role.TOOL)


def shown_replies(share: Share) -> QuerySet[Message]:
    """Return the messages whose requests the link may show, the newest first."""
    if not share.with_view:
        return Message.objects.none()
    rows = shown_messages(share).filter(has_request(), role=Message.Role.ASSISTANT)
    return rows.order_by("-seq")


def _stood_then(share: Share) -> Q:
    """Match the messages that were in the conversation when the link was made."""
    stood = Q(superseded_at=None) | Q(superseded_at__gt=share.created_at)
    return stood & Q(seq__lte=share.last_seq)


def _is_shown(share: Share) -> Q:
    return _stood_then(share) & Q(excluded_at=None, deleted_at=None)


def is_request_shown(share: Share, call: ModelCall) -> bool:
    return bool(shown_requests(share, [call]))


def shown_requests(share: Share, calls: Collection[ModelCall]) -> list[ModelCall]:
    """Return the requests that can be shown, with a constant number of statements.

    The link has to show every message that they were made of, also those of their
    summaries. Facts are from other conversations, so requests with facts are left out.
    """
    calls = [call for call in calls if not call.refs.get("facts")]
    versions = {version for call in calls for version in call.refs["summaries"]}
    sent = share.conversation.summaries.filter(version__in=versions)
    rows = sent.only("version", "first_seq", "last_seq", "flags", "created_at")
    # Messages gone before a summary was written are not in its words.
    covered = {
        row.version: Q(seq__range=(row.first_seq, row.last_seq))
        & (
            Q(excluded_at__gte=row.written_at)
            | Q(superseded_at__gte=row.written_at)
            | Q(deleted_at__gte=row.written_at)
        )
        for row in rows
    }
    hidden = share.conversation.messages.exclude(_is_shown(share))
    counts = hidden.aggregate(
        **{
            f"of_{place}": Count("pk", filter=_used_by(call.refs, covered))
            for place, call in enumerate(calls)
        }
    )
    return [call for place, call in enumerate(calls) if not counts[f"of_{place}"]]


def _used_by(refs: dict[str, Any], covered: Mapping[int, Q]) -> Q:
    ruled = {seq for seq, *_rest in refs.get("rules", ())}
    quoted = {*list_noted(refs), *ruled} - {None, 0}
    used = in_ranges([*list_sent_ranges(refs), *to_ranges(quoted)])
    parts = (covered[version] for version in refs["summaries"] if version in covered)
    return reduce(or_, parts, used)
