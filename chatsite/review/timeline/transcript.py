"""The whole transcript, a hundred messages a page, and where the model sees each."""

from dataclasses import dataclass

from django.core.paginator import Page, Paginator

from chatsite.pages.presenters.locations import Mark, mark_of, states_of
from memory.integrity import signatures
from memory.models import Conversation, Message

from .. import redaction
from ..rights import Rights
from .reading import readable, text_of

PAGE = 100


@dataclass(frozen=True, slots=True)
class Entry:
    row: Message
    text: str
    mark: Mark
    holds: bool | None


@dataclass(frozen=True, slots=True)
class Transcript:
    page: Page
    entries: list[Entry]

    @property
    def span(self) -> str:
        first, last = self.entries[0].row.seq, self.entries[-1].row.seq
        return f"#{first}–#{last}"


def build(conversation: Conversation, rights: Rights, page: int | None) -> Transcript:
    rows = readable(conversation.messages, rights, redaction.MESSAGE).order_by("seq")
    shown = Paginator(rows, PAGE).get_page(page)
    found = list(shown)
    states = states_of(conversation, [row.seq for row in found])
    active = conversation.summaries.filter(status="active").order_by("first_seq")
    summaries = list(active.defer(*redaction.SUMMARY))
    return Transcript(
        shown,
        [
            Entry(
                row,
                text_of(row, rights),
                mark_of(row, states.get(row.seq), summaries),
                signatures.holds(row) if rights.content else None,
            )
            for row in found
        ],
    )


def page_of(conversation: Conversation, seq: int) -> int:
    """The page that message `seq` stands on."""
    before = conversation.messages.filter(seq__lt=seq).count()
    return before // PAGE + 1
