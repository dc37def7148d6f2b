"""Events as HTML for htmx: every top-level element of a frame is swapped by its id.

This side remembers what each page shows, so a page gets only what it lacks.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.translation import gettext as _

from chatsite import slots
from chatsite.features.tools.events import ToolEvent
from chatsite.features.tools.models import ToolCall
from chatsite.jobs import activity
from chatsite.pages import parts
from chatsite.pages.presenters import context_pane, transcript_pane
from chatsite.pages.presenters.transcript_pane import TurnView, hash_state
from chatsite.plugins import AppEvent
from chatsite.protocol import events
from chatsite.turns.models import Turn
from chatsite.turns.requests import model_of
from memory.models import Conversation, Summary

from .live_reply import LiveReply

# The element that holds the chosen model for the message box.
MODEL_CHOICE = '<i id="model-now" hx-swap-oob="outerHTML" hidden data-model="{}"></i>'


@dataclass(slots=True)
class LivePage:
    """The state of one browser page, as far as its socket has brought it."""

    # The hash of the state that the page came with, until the first sync.
    came_with: str = ""
    shown: set[int] = field(default_factory=set)
    steps: set[int | None] = field(default_factory=set)  # those that have their card
    live: dict[int, LiveReply] = field(default_factory=dict)
    # Texts that apps write into this page at its request, by name.
    watched: dict[str, LiveReply] = field(default_factory=dict)

    @staticmethod
    def make_optional(html: str) -> str:
        """Mark a part of a fragment that a page drops if it has no place for it.

        Users can close what an app draws at their request (static/js/pieces.js).
        """
        return f"<!--optional-->{html}<!--end-->" if html else ""

    def sync(self, conversation: Conversation, status: str = "") -> Iterator[str]:
        """Yield the parts of one fragment, the latest page of the transcript.

        It is read from the database at once, then drawn turn by turn.
        """
        pane = transcript_pane.show_latest_turns(conversation)
        came_with, self.came_with = self.came_with, ""
        is_current = came_with and came_with == hash_state(conversation, pane)
        views = [item for item in pane.items if isinstance(item, TurnView)]
        self.shown = {view.id for view in views}
        self.steps = {card.pk for view in views for card in view.cards}
        self.live = {
            view.id: LiveReply.from_view(view)
            for view in views
            if view.partial is not None
        }
        yield '<div id="turns" hx-swap-oob="innerHTML">'
        for part in pane.one_by_one():
            values = {"conversation": conversation, "pane": part}
            yield render_to_string("chat/_turns.html", values)
        yield "</div>" + render_activities(conversation)
        yield "" if is_current else _render_refresh(conversation)
        yield parts.render_status(status)
        yield format_html(MODEL_CHOICE, model_of(conversation))
        yield slots.draw("user", user_id=conversation.owner_id, is_fragment=True)

    def draw_step(self, conversation_id: int, event: ToolEvent) -> Iterator[str]:
        """Yield the changed card of a tool call, or its turn if it has no card yet.

        A late result has a separate place in the transcript, so it takes a sync.
        """
        conversation, view = transcript_pane.turn_view(conversation_id, event.turn)
        [card] = [card for card in view.cards if card.pk == event.call] or [None]
        status = event.describe_status()
        is_here = event.turn in self.shown or event.turn > max(self.shown, default=0)
        if card is None or card.has_late_answer or not is_here:
            yield from self.sync(conversation, status)
        elif event.call in self.steps and event.state != ToolCall.State.LATE:
            yield card.draw_alone(conversation) + parts.render_status(status)
        else:
            yield self.draw_turn(conversation_id, event.turn, status)

    def draw_turn(self, conversation_id: int, turn_id: int, status: str) -> str:
        """Render one turn from the database. Raises Turn.DoesNotExist."""
        conversation, view = transcript_pane.turn_view(conversation_id, turn_id)
        html = parts.render_turn(conversation, view)
        self.steps.update(card.pk for card in view.cards)
        if view.partial is None:
            self.live.pop(view.id, None)
        else:
            self.live[view.id] = LiveReply.from_view(view)
        # A turn that the page has is swapped by the id of its section.
        newest = ""
        if view.id not in self.shown:
            self.shown.add(view.id)
            html = format_html('<div hx-swap-oob="beforeend:#turns">{}</div>', html)
            # Drawn again, its request may be another one, such as without its tools.
            if view.partial is not None and not view.position:
                sent = [(row.seq, row.text, row.attachments) for row in view.messages]
                newest = context_pane.hash_newest(conversation, sent)
        refresh = _render_refresh(conversation, newest)
        return html + refresh + parts.render_status(status)

    def draw_frame(self, frame: events.Frame) -> str | None:
        """Render the next words of a reply; "" = nothing new, None = page must sync."""
        growing = self.live.get(frame.turn)
        return growing.take_frame(frame) if growing else None


def render_ack(event: events.Ack) -> str:
    values = {"client_id": event.client_id, "seq": event.seq}
    return render_to_string("chat/_ack.html", values)


def render_error(event: events.Error) -> str:
    context = {
        "code": event.code,
        "detail": event.detail,
        "client_id": event.client_id or "",
        "retry_after": event.retry_after and str(event.retry_after),
        "seq": event.seq or "",
    }
    return render_to_string("chat/_error.html", context)


def render_title(conversation: Conversation) -> str:
    return render_to_string("chat/_title.html", {"conversation": conversation})


def render_activities(conversation: Conversation) -> str:
    values = activity.template_values(conversation, oob=True)
    return render_to_string("chat/_activities.html", values)


def _render_refresh(conversation: Conversation, newest: str = "") -> str:
    values = {"conversation": conversation, "newest": newest}
    return render_to_string("chat/_refresh_context.html", values)


def status_of(event: events.Event, conversation_id: int) -> str:
    """Return the text for screen readers: boundaries only, never words of a reply."""
    match event:
        case AppEvent():
            return event.describe_status()
        case events.State(state=Turn.State.RUNNING):
            return _("Generating")
        case events.TurnEnd(state=Turn.State.DONE):
            return _("Reply complete")
        case events.TurnEnd():
            return _("Reply ended")
        case events.Memory(state="folded"):
            rows = Summary.objects.filter(conversation_id=conversation_id)
            newest = rows.get(version=event.version)
            values = {"first": newest.first_seq, "last": newest.last_seq}
            if newest.is_trimmed:
                return _("Messages %(first)s–%(last)s left the window") % values
            values["version"] = newest.version
            said = _("Messages %(first)s–%(last)s were summarised (v%(version)s)")
            return said % values
        case events.Memory(state="failed"):
            return _("Summary not updated; the messages stay in the window")
    return ""
