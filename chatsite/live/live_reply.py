"""A running reply on one page: the text that the page shows, and its next change.

A page only ever gets what it lacks: formatted blocks once, and of the open part behind
them the new letters.
"""

from dataclasses import dataclass, field

from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.safestring import SafeString

from chatsite.pages import incremental
from chatsite.pages.presenters.transcript_pane import TurnView
from chatsite.protocol import events


@dataclass(slots=True)
class LiveReply:
    """The part of a running reply that one page shows.

    It is the reply of a turn, or a text that an app names.
    """

    turn: int | str
    attempt: int = 0
    text: str = ""
    view: incremental.RenderedReply = field(default_factory=incremental.RenderedReply)

    @classmethod
    def from_view(cls, turn: TurnView) -> "LiveReply":
        return cls(turn.id, turn.text_attempt, turn.partial or "", turn.rendered)

    def take_frame(self, frame: events.Frame) -> str | None:
        """Return the change as fragments; "" = nothing new, None = page must sync."""
        if frame.attempt < self.attempt:
            return ""
        if frame.attempt > self.attempt:
            if frame.base:
                return None
            self.attempt, self.text = frame.attempt, ""
            return self._show(frame.tail, from_start=True)
        if frame.base > len(self.text):
            return None
        if frame.base + len(frame.tail) < len(self.text):
            return ""  # older than what a sync has read from the database
        text = self.text[: frame.base] + frame.tail
        return self._show(text, from_start=not text.startswith(self.text))

    def _show(self, text: str, *, from_start: bool) -> str:
        before, self.text = self.view, text
        self.view = incremental.find_renderer(self.turn, self.attempt, text).view_reply(
            text
        )
        if from_start or not self.view.is_continuation_of(before):
            # The whole text replaces that of another attempt.
            return self._draw("body", "chat/_partial_reply.html")
        parts = self._blocks(before.end) if self.view.end > before.end else ""
        is_same = self.view.form == before.form and self.view.end == before.end
        if is_same and before.tail and self.view.tail.startswith(before.tail):
            return self._letters(self.view.tail[len(before.tail) :])
        return parts + self._draw("open", "chat/_open_block.html")

    def _draw(self, part: str, template: str) -> SafeString:
        shown = {"turn": {"id": self.turn, "rendered": self.view}}
        return format_html(
            '<div id="turn-{}-{}" hx-swap-oob="innerHTML">{}</div>',
            self.turn,
            part,
            render_to_string(template, shown),
        )

    def _blocks(self, after: int) -> SafeString:
        return format_html(
            '<div hx-swap-oob="beforebegin:#turn-{}-open">{}</div>',
            self.turn,
            self.view.join_html(after),
        )

    def _letters(self, letters: str) -> SafeString | str:
        if not letters:
            return ""
        return format_html(
            '<span id="turn-{}-tail" hx-swap-oob="beforeend">{}</span>',
            self.turn,
            letters,
        )
