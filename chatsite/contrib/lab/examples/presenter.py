"""An example as its pages show it: what was asked and said, what should have been said,
and what other models answered.
"""

from dataclasses import dataclass

from django.db.models import F, QuerySet
from django.db.models.functions import Left

from chatsite.llm import providers
from chatsite.pages.forms import preset_name
from chatsite.protocol.errors import explain_code
from memory.models import ModelCall

from .models import Example, ExampleAnswer
from .proofs import MissingTexts, find_missing_texts, prove_examples

# How much of a text a list shows.
BEGINNING = 200


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    row: ExampleAnswer
    model: str
    policy: str
    # Why there is none.
    error: str


@dataclass(frozen=True, slots=True)
class ShownExample:
    """`asked`: the message that was answered; `missing`: why it is not exported; "" and
    None where nothing is."""

    example: Example
    asked: str
    model: str
    call: ModelCall | None
    missing: MissingTexts | None
    answers: list[ShownAnswer]


def describe_example(example: Example) -> ShownExample:
    """One with its conversation and message."""
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
    return ShownExample(
        example,
        asked,
        providers.name_model(call.model) if call else "",
        call,
        missing,
        [_show_answer(row) for row in example.answers.order_by("-id")],
    )


def _show_answer(row: ExampleAnswer) -> ShownAnswer:
    return ShownAnswer(
        row,
        providers.name_model(row.model),
        preset_name(row.preset),
        explain_code(row.error) if row.error else "",
    )


def with_beginnings(rows: QuerySet[Example]) -> QuerySet[Example]:
    """For lists: the numbers of the replies, and how the texts begin."""
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
    """Rows of a page, each with what is missing of its request."""
    missing = find_missing_texts(rows)
    return [(row, missing.get(row.pk)) for row in rows]
