"""The explanation of a client's request, for its page.

Why it is in its conversation, and what its client changed, dropped or added.
"""

from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext as _

from chatsite.contrib.endpoint.apis import find_api_by_name
from chatsite.contrib.endpoint.apis.provider_report import TokenUse, find_mismatch
from chatsite.contrib.endpoint.models import ClientConversation, ClientRequest
from chatsite.contrib.endpoint.provider_reports.cache_misses import (
    CacheMiss,
    find_cache_miss,
)
from chatsite.contrib.endpoint.provider_reports.summaries import (
    count_changed_blocks,
    count_read_elsewhere,
)
from chatsite.contrib.endpoint.store.rebuilding import KEY, read_sent_body
from chatsite.contrib.endpoint.store.sent_forms import read_changed_texts
from chatsite.pages.diff import DiffPiece, diff_words
from memory.models import Conversation, ModelCall
from memory.ranges import Ranges, to_ranges

from .joining import list_of_owner
from .notes import NAMED, list_sent_spans, list_unsent
from .reason_texts import LINEAGES, WHY

# Requests on one page, changed messages, and characters compared of each.
MAX_REQUESTS, MAX_CHANGED, MAX_CHARS = 50, 20, 20_000
MAX_RELATED = 50


@dataclass(frozen=True, slots=True)
class RequestRow:
    """A request by its key.

    `seq` is the number of its reply; None: it has none.
    """

    pk: int
    seq: int | None
    at: datetime
    model: str
    key: str
    lineage: str
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ChangedMessage:
    """A message whose text the client changed after it was stored."""

    seq: int
    pieces: list[DiffPiece]


@dataclass(frozen=True, slots=True)
class Explanation:
    """A request compared with the transcript and the request before."""

    row: RequestRow
    instructions: list[DiffPiece]
    changed: list[ChangedMessage]
    # Messages of the transcript that were not in the request.
    forgotten: Ranges
    miss: CacheMiss | None
    # The sum of the iterations and the counts of the reply, where they disagree.
    mismatch: tuple[TokenUse, TokenUse] | None
    # The provider's summaries that the client changed.
    changed_summaries: int
    # The messages that only another provider can read, and its name.
    elsewhere: tuple[int, str]


@dataclass(frozen=True, slots=True)
class Relation:
    """Another conversation, and its relation to this one."""

    conversation: Conversation
    how: str


def list_requests(conversation: Conversation, before: int | None) -> list[RequestRow]:
    """Return the requests before this key, newest first.

    At most one more than a page shows.
    """
    rows = ClientRequest.objects.filter(call__conversation=conversation)
    if before is not None:
        rows = rows.filter(pk__lt=before)
    columns = ("pk", "call__message__seq", "call__created_at", "call__model")
    values = rows.order_by("-pk").values_list(*columns, "key__name", "lineage", "why")
    found = []
    for *own, key, lineage, why in values[: MAX_REQUESTS + 1]:
        reasons = tuple(str(WHY.get(code, code)) for code in why)
        words = str(LINEAGES.get(lineage, lineage))
        found.append(RequestRow(*own, key or "", words, reasons))
    return found


def find_request(conversation: Conversation, seq: int) -> RequestRow | None:
    """Return the last request that has reply `seq`."""
    rows = ClientRequest.objects.filter(
        call__conversation=conversation, call__message__seq=seq
    )
    pk = rows.order_by("-pk").values_list("pk", flat=True).first()
    return list_requests(conversation, pk + 1)[0] if pk else None


def explain_request(conversation: Conversation, row: RequestRow) -> Explanation | None:
    """Return the explanation of a request; None: its stored parts are damaged."""
    calls = conversation.model_calls.filter(of_client__isnull=False, refs__has_key=KEY)
    call = calls.filter(pk=row.pk).select_related("of_client").first()
    if call is None:
        return None
    earlier = calls.filter(pk__lt=row.pk)
    before = earlier.order_by("-pk").first()
    return Explanation(
        row,
        _compare_instructions(before, call) if before else [],
        list_changed(call),
        _list_unsent(call, row.seq),
        find_cache_miss(call),
        find_mismatch(call.of_client.report),
        count_changed_blocks(call),
        count_read_elsewhere(call, list_sent_spans(call.refs)),
    )


def _compare_instructions(before: ModelCall, call: ModelCall) -> list[DiffPiece]:
    if before.refs["system"] == call.refs["system"]:
        return []
    return _compare_texts(*map(_read_instructions, (before, call)))


def _read_instructions(call: ModelCall) -> str:
    api = find_api_by_name(call.refs[KEY]["wire"])
    return api.read_instructions(read_sent_body(call))


def list_changed(call: ModelCall) -> list[ChangedMessage]:
    changed = [*read_changed_texts(call).items()][-MAX_CHANGED:]
    return [ChangedMessage(seq, _compare_texts(*texts)) for seq, texts in changed]


def _compare_texts(old: str, new: str) -> list[DiffPiece]:
    return diff_words(old[:MAX_CHARS], new[:MAX_CHARS])


def _list_unsent(call: ModelCall, seq: int | None) -> Ranges:
    if NAMED in call.of_client.why:
        return []
    sent = list_sent_spans(call.refs)
    within = {}
    if seq is not None:
        within = {"seq__lt": seq}
    elif sent:
        within = {"seq__lte": max(last for _, last in sent)}
    return to_ranges(list_unsent(call.conversation, sent, **within))


def list_related(own: ClientConversation) -> list[Relation]:
    """Return the conversations of the family, and those beside it."""
    owned = list_of_owner(own.conversation.owner_id).select_related("conversation")
    family = owned.filter(family=own.family).exclude(pk=own.pk)
    found = [
        Relation(each.conversation, _name_relation(own, each))
        for each in family.order_by("-pk")[:MAX_RELATED]
    ]
    if main := owned.filter(pk=own.linked_id).first():
        found.append(Relation(main.conversation, _("this was made beside it")))
    beside = owned.filter(linked=own.pk).order_by("-pk")[:MAX_RELATED]
    for each in beside:
        how = _("made beside this")
        if each.is_agent:
            how = _("an agent beside this")
        elif each.is_single:
            how = _("a single call beside this")
        found.append(Relation(each.conversation, how))
    return found


def _name_relation(own: ClientConversation, other: ClientConversation) -> str:
    if other.pk == own.joined_id:
        return _("this continues it, because you joined them")
    if other.joined_id == own.pk:
        return _("it continues this, because you joined them")
    if other.pk == own.parent_id and own.is_single:
        return _("this is a side call of it")
    if other.parent_id == own.pk and other.is_single:
        return _("a side call of this")
    if other.pk == own.parent_id:
        return _("this is a branch of it")
    if other.parent_id == own.pk:
        return _("a branch of this")
    return _("belongs to the same conversation")
