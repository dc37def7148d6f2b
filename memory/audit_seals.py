"""Rows that somebody changed past the site, and versions that somebody took away.

Every text is read and hashed, so this takes some seconds for a million messages.
"""

import hmac
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter

from django.db.models import Exists, F, OuterRef

from .models import Conversation, Message, ModelCall, Summary
from .violation import Violation

# Of a conversation's broken rows, how many are named.
NAMED = 10
# The code, the rows and their seal, and what is said of one of them.
SEALED = (
    ("seal.message", Message, "seal", "seq", "message #{}"),
    ("seal.summary", Summary, "seal", "version", "v{}"),
    ("seal.status", Summary, "status_seal", "version", "the status of v{}"),
    ("seal.call", ModelCall, "seal", "pk", "call {}"),
)


def find_broken_seals() -> Iterator[Violation]:
    """Messages, summaries, their status, and requests that are not as the site wrote
    them; one violation for each kind and conversation."""
    for code, model, name, label, words in SEALED:
        broken = _broken(model, name, label)
        for pk, found in groupby(broken, key=itemgetter(0)):
            labels = [words.format(label) for _, label in found]
            more = f" and {len(labels) - NAMED:,} more" if len(labels) > NAMED else ""
            detail = f"not as it was written: {', '.join(labels[:NAMED])}{more}"
            if Conversation.objects.filter(pk=pk).exists():
                yield Violation(code, pk, detail)


def _broken(model: type, name: str, label: str) -> Iterator[tuple[int, int]]:
    field = model._meta.get_field(name)
    rows = model.objects.order_by("conversation_id", "pk")
    values = rows.values_list("conversation_id", label, name, *field.columns)
    for pk, label, seal, *held in values.iterator(chunk_size=2000):
        if not hmac.compare_digest(seal or "", field.digest(held)):
            yield pk, label


def find_missing_versions() -> Iterator[Violation]:
    """Each version is numbered after the newest there is, so none can be missing but
    in what a branch or an import has left out."""
    before = Summary.objects.filter(
        conversation=OuterRef("conversation"), version=OuterRef("version") - 1
    )
    rows = Summary.objects.filter(
        ~Exists(before), version__gt=1, created_at__gte=F("conversation__created_at")
    )
    for pk, version in rows.order_by("pk").values_list("conversation_id", "version"):
        yield Violation("R7.missing", pk, f"there is no version before v{version}")
