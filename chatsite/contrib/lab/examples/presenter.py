"""Examples as their pages show them, with the other models' answers."""

from dataclasses import dataclass

from django.db.models import F, QuerySet
from django.db.models.functions import Left

from memory.models import ModelCall

from .models import Example
from .proofs import MissingTexts, find_missing_texts, prove_examples

# Characters of a text that a list shows.
BEGINNING = 200


@dataclass(frozen=True, slots=True)
class ShownExample:
    """An example with the values that its page shows.

    `asked`: the message that was answered, or "". `missing`: the texts without
    which it is not exported, or None.
    """

    example: Example
    asked: str
    call: ModelCall | None
    missing: MissingTexts | None


def describe_example(example: Example) -> ShownExample:
    """Prepare one example, which has its conversation and message loaded."""
    [proof] = prove_examples([example])
    call = proof.call
    missing = None
    if proof.built is None:
        missing = find_missing_texts([example]).get(
            example.pk, MissingTexts(is_unknown=True)
        )
    seq = call.refs.get("newest") if call else None
    asked = ""
    if isinstance(seq, int):
        rows = example.conversation.messages.filter(seq=seq)
        asked = rows.values_list("text", flat=True).first() or ""
    return ShownExample(example, asked, call, missing)


def with_beginnings(rows: QuerySet[Example]) -> QuerySet[Example]:
    """Annotate rows for lists: numbers of the replies, and beginnings of the texts."""
    return (
        rows.annotate(
            seq=F("message__seq"),
            said=Left("message__text", BEGINNING),
            better=Left("correction", BEGINNING),
        )
        .defer("correction")
        .select_related("conversation")
    )


def describe_listed(rows: list[Example]) -> list[tuple[Example, MissingTexts | None]]:
    """Pair the rows of a page with the texts that their requests lack, or None."""
    missing = find_missing_texts(rows)
    return [(row, missing.get(row.pk)) for row in rows]
