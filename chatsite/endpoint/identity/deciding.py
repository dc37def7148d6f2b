"""Which conversation a history goes on: decided from what a store knows, written
nowhere. In doubt it is a new one.

`decide_lineage` and the writing of its decision have to be one step for a person: two
requests that are decided at once could otherwise both go on from the same message.
"""

from .decision import Decision
from .hints import Hints
from .history import History
from .known import Known, Place
from .search import find_reach


def decide_lineage(history: History, hints: Hints, known: Known) -> Decision:
    return Deciding(history, hints, known).decide()


class Deciding:
    """One decision, with what was looked up for it."""

    def __init__(self, history: History, hints: Hints, known: Known) -> None:
        self.messages = history.messages
        self.hints = hints
        self.known = known
        self.why: list[str] = []

    def decide(self) -> Decision:
        if not self.messages:
            return self.begin_new("unknown")
        reach = find_reach(self.messages, self.known)
        if not reach.count:
            return self.begin_new("unknown")
        place = reach.places[0]
        if reach.count == len(self.messages):
            return self.decide_whole(place)
        if place.is_tip:
            return self.make("continued", place, reach.count, "tip")
        return self.make("branch", place, reach.count, "inside")

    def decide_whole(self, place: Place) -> Decision:
        if place.is_open:
            return self.make("retry", place, len(self.messages), "open")
        return self.make("branch", place, len(self.messages), "whole")

    def make(self, kind, place: Place, first_new: int, *why: str) -> Decision:
        return Decision(
            kind,
            place.conversation,
            place.position + 1,
            first_new,
            why=(*self.why, *why),
        )

    def begin_new(self, *why: str) -> Decision:
        kind = "single" if len(self.messages) == 1 else "new"
        return Decision(kind, why=(*self.why, *why))
