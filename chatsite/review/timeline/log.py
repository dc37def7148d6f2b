"""The log of a conversation, newest first.

It has requests to models, versions made, changes by its owner, and actions of staff.
"""

from typing import Any

from django.db.models import CharField, F, QuerySet, Value
from django.urls import reverse
from django.utils.translation import gettext as _

from memory.models import Change, Conversation, ModelCall, Summary

from .. import access_log, labels, redaction
from ..models import AccessEvent, Review
from ..pages import timeline_url
from ..rights import Rights

PAGE = 100
FAILED = (Summary.Status.FAILED, Summary.Status.REJECTED)

Values = dict[str, Any]


def build_log(conversation: Conversation, rights: Rights, page: int | None) -> Values:
    """Return a page of the log: its entries, its number, and if another follows."""
    number = min(page or 1, 1_000_000)
    start = (number - 1) * PAGE
    made = ("message", "summary")
    texts = redaction.list_related_texts(ModelCall, made)
    calls = conversation.model_calls.select_related(*made)
    versions = conversation.summaries.select_related("author")
    looks = AccessEvent.objects.filter(conversation=conversation.uuid)
    sources = {
        "call": (calls.defer(*redaction.CALL, *texts), _describe_call),
        "change": (conversation.changes.all(), _describe_change),
        "version": (versions.defer(*redaction.SUMMARY), _describe_version),
        "access": (looks, _describe_access),
        "review": (conversation.reviews.all(), _describe_review),
    }
    first, *others = (
        _select_keys(rows, kind) for kind, (rows, _entry_of) in sources.items()
    )
    keys = first.union(*others, all=True).order_by("-created_at", "-key")
    found = list(keys[start : start + PAGE + 1])
    shown = [(kind, pk) for _at, kind, pk in found[:PAGE]]
    entries: dict[tuple[str, int], Values] = {}
    for kind, (rows, entry_of) in sources.items():
        for row in rows.filter(pk__in=[pk for name, pk in shown if name == kind]):
            entry = entry_of(row, rights)
            entries[kind, row.pk] = {"kind": kind, "at": row.created_at, **entry}
    return {
        "entries": [entries[key] for key in shown if key in entries],
        "number": number,
        "has_next": len(found) > PAGE,
    }


def _select_keys(rows: QuerySet, kind: str) -> QuerySet:
    name = Value(kind, output_field=CharField())
    named = rows.order_by().annotate(kind=name, key=F("pk"))
    return named.values_list("created_at", "kind", "key")


def _describe_call(row: ModelCall, rights: Rights) -> Values:
    text = _("%(given)s tokens in, %(made)s out, %(seconds).1f s") % {
        "given": f"{row.tokens_input or row.tokens_estimated:,}",
        "made": f"{row.tokens_output or 0:,}",
        "seconds": row.total_ms / 1000,
    }
    title = _("Request: %(purpose)s") % {"purpose": row.get_purpose_display()}
    if row.message:
        title += f" #{row.message.seq}"
    elif row.summary:
        title += f" v{row.summary.version}"
    return {
        "title": title,
        # Beside the names of people, of whom one may be called like a model.
        "who": _("model %(model)s") % {"model": row.model},
        "text": f"{text} · {redaction.show_error(row)}" if row.error else text,
        "url": reverse("admin:memory_modelcall_change", args=[row.pk]),
        "is_trouble": bool(row.error),
    }


def _describe_change(row: Change, rights: Rights) -> Values:
    parts = (row.seq and f"#{row.seq}", row.version and f"v{row.version}")
    return {
        "title": _("Owner: %(action)s") % {"action": row.get_action_display()},
        "who": row.conversation.owner.get_username(),
        "text": " ".join(filter(None, parts)),
    }


def _describe_version(row: Summary, rights: Rights) -> Values:
    said = (labels.format_span, labels.describe_trigger, labels.name_status)
    return {
        "title": _("Version v%(n)s") % {"n": row.version},
        "who": labels.name_author(row),
        "text": " · ".join(say(row) for say in said),
        "url": timeline_url(row.conversation_id, v=row.version),
        "is_trouble": row.status in FAILED,
    }


def _describe_access(row: AccessEvent, rights: Rights) -> Values:
    parts = (access_log.describe_target(row.target), row.address)
    return {
        "title": _("Staff: %(action)s") % {"action": row.get_action_display()},
        "who": row.username,
        "text": " · ".join(filter(None, parts)),
    }


def _describe_review(row: Review, rights: Rights) -> Values:
    upto = _("up to #%(seq)s and v%(version)s")
    upto %= {"seq": row.last_seq, "version": row.version}
    parts = (upto, rights.show_text(row.note))
    return {
        "title": _("Review"),
        "who": row.username,
        "text": " · ".join(filter(None, parts)),
    }
