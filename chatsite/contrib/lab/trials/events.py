"""The events of a trial over the socket: its next words and its end.

JSON clients get them, and pages that watch it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from django.utils.translation import gettext as _

from chatsite.live.live_reply import LiveReply
from chatsite.live.socket_client import CommandEffect
from chatsite.pages import parts as page_parts
from chatsite.plugins import AppCommand, AppEvent
from chatsite.protocol.errors import CommandError
from chatsite.protocol.events import read_integer
from memory.models import Conversation

from .models import Trial
from .parts import draw_card, name_live

if TYPE_CHECKING:
    from chatsite.live.fragments import LivePage
    from chatsite.live.socket_client import SocketClient


@dataclass(frozen=True, slots=True)
class TrialEvent(AppEvent):
    """The text of trial `trial` of reply `seq`: `known[:base] + tail`.

    A page gets it that has asked for it.
    """

    type: ClassVar = "trial"
    turn: ClassVar = 0
    trial: int
    seq: int
    state: str
    attempt: int
    base: int
    tail: str

    @classmethod
    def from_trial(cls, trial: Trial) -> Self:
        """Return the event with the whole text that is stored."""
        place = (trial.pk, trial.message.seq, trial.state, trial.attempt)
        return cls(*place, 0, trial.text)

    @classmethod
    def for_new_attempt(cls, trial: Trial, attempt: int) -> Self:
        return cls(trial.pk, trial.message.seq, Trial.State.RUNNING, attempt, 0, "")

    @property
    def is_words(self) -> bool:
        return self.state == Trial.State.RUNNING and bool(self.tail)

    def describe_status(self) -> str:
        if self.state in Trial.UNFINISHED:
            return ""
        return _("The other answer to #%(seq)s is ready") % {"seq": self.seq}

    def draw_at_once(self, page: "LivePage") -> str | None:
        shown = page.watched.get(name_live(self.trial))
        if shown is None:
            return ""
        words = shown.take_frame(self) if self.is_words else None
        return words and page.make_optional(words)

    def draw_on(self, page: "LivePage", client: "SocketClient") -> Iterator[str]:
        """Yield the card of the trial as the database has it."""
        name = name_live(self.trial)
        trial = Trial.objects.select_related("message").filter(pk=self.trial).first()
        if trial is None or name not in page.watched:
            return
        if trial.is_finished:
            del page.watched[name]
        else:
            page.watched[name] = self._open(trial)
        card = draw_card(client.read_conversation(), trial, is_fragment=True)
        status = page_parts.render_status(self.describe_status())
        yield page.make_optional(card) + status

    def draw_answer(self, page: "LivePage") -> str:
        """Return the card with the words that the page has missed; others follow."""
        name = name_live(self.trial)
        page.watched[name] = live = LiveReply(name, self.attempt - 1)
        return page.make_optional(live.take_frame(self) or "") if self.is_words else ""

    @staticmethod
    def _open(trial: Trial) -> LiveReply:
        live = LiveReply(name_live(trial.pk), trial.attempt)
        live.take_frame(TrialEvent.from_trial(trial))
        return live


@dataclass(frozen=True, slots=True)
class WatchTrial(AppCommand):
    """The command of a page that shows a trial being written."""

    trial: int

    def apply_to(self, conversation: Conversation) -> CommandEffect:
        rows = conversation.trials.select_related("message")
        trial = rows.filter(pk=self.trial).first()
        if trial is None:
            raise CommandError("not_found", _("There is no such trial."))
        told = TrialEvent.from_trial(trial)
        # One that has ended meanwhile is drawn whole, as for all who watch it.
        return CommandEffect((told,), (told,) if trial.is_finished else ())


def read_watch(value: dict[str, Any]) -> WatchTrial:
    return WatchTrial(read_integer(value, "trial"))
