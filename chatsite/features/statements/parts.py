"""The page parts of statements below their message, and their settings."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from django import forms
from django.db.models import QuerySet
from django.template.loader import render_to_string
from django.utils.translation import gettext

from chatsite.pages.presenters.transcript_pane import ShownMessage
from memory.engine import policy
from memory.engine.facts.detection import find_facts
from memory.models import Conversation


@dataclass(frozen=True, slots=True)
class ShownStatement:
    """A statement of a message, in the user's wording."""

    pk: int
    text: str
    state: str

    @property
    def is_fact(self) -> bool:
        """True if the user says something of themselves, and gives no order."""
        return bool(find_facts(self.text))


def group_by_message(
    rows: QuerySet, first: int, end: int | None
) -> dict[int, tuple[ShownStatement, ...]]:
    """Return the statements of messages `first` to before `end`, by message number."""
    rows = rows.filter(seq__gte=first).order_by("seq", "start")
    if end:
        rows = rows.filter(seq__lt=end)
    values = rows.values_list("seq", "pk", "words", "state")
    return {
        seq: tuple(ShownStatement(*row[1:]) for row in group)
        for seq, group in groupby(values, key=itemgetter(0))
    }


def make_message_part(name: str) -> Callable[[Conversation, ShownMessage], str]:
    """Return the function that draws the rules or facts of a message.

    It asks whether to keep those on offer.
    """

    def draw(conversation: Conversation, message: ShownMessage) -> str:
        if not (found := message.extra[name]):
            return ""
        values = {"conversation": conversation, name: found}
        return render_to_string(f"{name}/_message.html", values)

    return draw


def make_choice(
    label: str, empty: str, words: Mapping[str, str]
) -> Callable[[], forms.ChoiceField]:
    """Return what makes a field of settings: `empty`, or one of these `words`."""
    return lambda: forms.ChoiceField(
        label=label,
        choices=[("", empty), *policy.list_choices(words, gettext)],
        required=False,
    )
