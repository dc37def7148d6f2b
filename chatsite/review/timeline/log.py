"""What was done with a conversation, newest first: requests to models, versions made,
and what staff did.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import CharField, F, QuerySet, Value
from django.urls import reverse
from django.utils.translation import gettext as _

from memory.models import Conversation, ModelCall, Summary

from .. import access_log, labels, redaction
from ..models import AccessEvent, Review
from ..rights import Rights
from .links import timeline_url

PAGE = 100
Row = tuple[datetime, str, int]


@dataclass(frozen=True, slots=True)
class Entry:
    at: datetime
    kind: str
    title: str
    who: str
    text: str
    url: str = ""
    is_trouble: bool = False


@dataclass(frozen=True, slots=True)
class Log:
    entries: list[Entry]
    number: int
    has_next: bool


def build(conversation: Conversation, rights: Rights, page: int | None) -> Log:
    number = min(page or 1, 1_000_000)
    start = (number - 1) * PAGE
    found = list(_all(conversation)[start : start + PAGE + 1])
    told = _tell(found[:PAGE], rights)
    return Log(told, number, len(found) > PAGE)


def _all(conversation: Conversation) -> QuerySet:
    sources = (
        ("call", ModelCall.objects.filter(conversation=conversation)),
        ("version", Summary.objects.filter(conversation=conversation)),
        ("access", AccessEvent.objects.filter(conversation=conversation.uuid)),
        ("review", Review.objects.filter(conversation=conversation)),
    )
    first, *others = (_keys(rows, kind) for kind, rows in sources)
    return first.union(*others, all=True).order_by("-created_at", "-key")


def _keys(rows: QuerySet, kind: str) -> QuerySet:
    name = Value(kind, output_field=CharField())
    named = rows.order_by().annotate(kind=name, key=F("pk"))
    return named.values_list("created_at", "kind", "key")


def _tell(found: list[Row], rights: Rights) -> list[Entry]:
    tellers: dict[str, tuple[QuerySet, Callable[[Any, Rights], Entry]]] = {
        "call": (_calls(), _call),
        "version": (_versions(), _version),
        "access": (AccessEvent.objects.all(), _access),
        "review": (Review.objects.all(), _review),
    }
    told: dict[tuple[str, int], Entry] = {}
    for kind, (rows, tell) in tellers.items():
        keys = [pk for _at, name, pk in found if name == kind]
        for row in rows.filter(pk__in=keys):
            told[kind, row.pk] = tell(row, rights)
    return [told[kind, pk] for _at, kind, pk in found if (kind, pk) in told]


def _calls() -> QuerySet[ModelCall]:
    rows = ModelCall.objects.select_related("message", "summary")
    return rows.defer(
        *redaction.CALL,
        *redaction.below("message", redaction.MESSAGE),
        *redaction.below("summary", redaction.SUMMARY),
    )


def _versions() -> QuerySet[Summary]:
    return Summary.objects.select_related("author").defer(*redaction.SUMMARY)


def _call(row: ModelCall, rights: Rights) -> Entry:
    made = row.message or row.summary
    tokens = _("%(given)s tokens in, %(made)s out, %(seconds).1f s") % {
        "given": f"{row.tokens_input or row.tokens_estimated:,}",
        "made": f"{row.tokens_output or 0:,}",
        "seconds": row.total_ms / 1000,
    }
    target = f" {'#' if row.message else 'v'}{_number(made)}" if made else ""
    return Entry(
        at=row.created_at,
        kind="call",
        title=_("Request: %(purpose)s") % {"purpose": row.get_purpose_display()}
        + target,
        who=row.model,
        text=f"{tokens} · {redaction.error(row)}" if row.error else tokens,
        url=reverse("admin:memory_modelcall_change", args=[row.pk]),
        is_trouble=bool(row.error),
    )


def _number(made: Any) -> int:
    return getattr(made, "seq", None) or made.version


def _version(row: Summary, rights: Rights) -> Entry:
    status = row.get_status_display()
    return Entry(
        at=row.created_at,
        kind="version",
        title=_("Version v%(n)s") % {"n": row.version},
        who=labels.author(row),
        text=f"{labels.span(row)} · {labels.because(row)} · {status}",
        url=timeline_url(row.conversation_id, v=row.version),
        is_trouble=row.status in (Summary.Status.FAILED, Summary.Status.REJECTED),
    )


def _access(row: AccessEvent, rights: Rights) -> Entry:
    return Entry(
        at=row.created_at,
        kind="access",
        title=_("Staff: %(action)s") % {"action": row.get_action_display()},
        who=row.username,
        text=" · ".join(filter(None, (access_log.in_words(row.target), row.address))),
    )


def _review(row: Review, rights: Rights) -> Entry:
    upto = _("up to #%(seq)s and v%(version)s")
    values = {"seq": row.last_seq, "version": row.version}
    return Entry(
        at=row.created_at,
        kind="review",
        title=_("Review"),
        who=row.username,
        text=" · ".join(filter(None, (upto % values, rights.words(row.note)))),
    )
