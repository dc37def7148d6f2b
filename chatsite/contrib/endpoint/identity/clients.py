"""The trust in a client's own conversation id.

The id only narrows the search: a wrong id, or one id for everything, must not join two
histories.
"""

from collections.abc import Sequence

from .hints import Hints
from .known import Known, Place


class ClientId:
    """A request's conversation id, and the conversations that have it."""

    def __init__(self, hints: Hints, known: Known) -> None:
        self.name = hints.conversation
        self.places = known.find_client(self.name) if self.name else ()
        several = [each for each in self.places if not each.is_single]
        families = {each.family for each in several or self.places[:1]}
        # One conversation, with its branches, has this id. Single calls, such as for a
        # title, may have it, too; of these alone, as of what was asked twice, the last.
        self.is_trusted = len(families) == 1
        self.is_shared = len(families) > 1
        self.is_new = bool(self.name) and not self.places

    @property
    def tip(self) -> Place | None:
        """The newest conversation with this id that is more than a single call."""
        return next((each for each in self.places if not each.is_single), None)

    def narrow_places(self, places: Sequence[Place]) -> list[Place]:
        """Return the places with this id, else those without an id, else all."""
        if not self.name:
            return [*places]
        for name in (self.name, ""):
            if own := [each for each in places if each.client == name]:
                return own
        return [*places]

    def begins_a_copy(self, place: Place) -> bool:
        """Return whether the client copies this conversation under a new id."""
        return self.is_new and place.client not in ("", self.name)

    def explain(self, place: Place) -> list[str]:
        if not self.name:
            return []
        if self.is_shared:
            return ["header-shared"]
        if place.client == self.name:
            return ["header-same"]
        return ["header-new" if self.is_new else "header-other"]
