"""What calls of tools are to the turns that make them: steps of their own."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType

from django.db.models import Exists, OuterRef, Q, QuerySet

from chatsite.features.tools import registry, results
from chatsite.features.tools.cards import tool_cards
from chatsite.features.tools.events import Tool
from chatsite.features.tools.models import ToolCall
from chatsite.pages.presenters.locations import Location
from chatsite.plugins import FoundSource, LeafEvent, StepCard, TurnSteps
from chatsite.turns.attempt import MakeRoom, Tools
from chatsite.turns.lifecycle import Result, TurnClaim
from chatsite.turns.models import Turn
from memory.models import Conversation, Message

from . import answers, result_files


class ToolSteps(TurnSteps):
    """Requests and calls, one after the other, until a reply asks for no call."""

    _tool_loop: ModuleType | None = None

    def runs(self, turn: Turn) -> bool:
        """Its conversation has tools, or had some when another attempt began."""
        if turn.conversation.tools:
            return True
        calls = turn.tool_calls.filter(request__superseded_at=None)
        return turn.may_have_rows and calls.exists()

    async def run(
        self, claim: TurnClaim, turn: Turn, make_room: MakeRoom
    ) -> tuple[TurnClaim, Result] | None:
        loop = await self._load()
        return await loop.run(claim, turn, make_room)

    def offer_now(self, conversation: Conversation) -> Tools:
        return registry.offer_tools(registry.chosen(self.offered(conversation)))

    async def offer_again(self, names: Sequence[str]) -> Tools:
        await registry.ready()
        return registry.offer_tools(registry.chosen(names))

    async def _load(self) -> ModuleType:
        if self._tool_loop is None:
            self._tool_loop = await asyncio.to_thread(_load_tool_loop)
        return self._tool_loop

    def has_open(self) -> Exists:
        calls = ToolCall.objects.filter(turn=OuterRef("pk"))
        return Exists(calls.filter(state__in=ToolCall.UNANSWERED))

    def close(self, turn: Turn) -> None:
        closed = answers.close_calls(turn)
        turn.also_told = [Tool.of(call) for call in closed]

    def is_removed(self) -> Exists:
        """Calls of the turn, not of another reply before, are out of the view."""
        calls = ToolCall.objects.filter(
            turn=OuterRef("pk"), request__superseded_at=None
        )
        is_hidden = Q(request__excluded_at__isnull=False)
        return Exists(calls.filter(is_hidden | Q(request__deleted_at__isnull=False)))

    def find_room(self, conversation: Conversation) -> int:
        return answers.find_room(conversation)

    def supersede(self, conversation: Conversation) -> list[LeafEvent]:
        return [Tool.of(call) for call in answers.give_up_late(conversation)]

    def find_cards(
        self,
        conversation: Conversation,
        turns: Sequence[Turn],
        rows: Sequence[Message],
        locate: Callable[[Message], Location],
    ) -> Mapping[int, tuple[StepCard, ...]]:
        return tool_cards.read_cards(conversation, turns, rows, locate)

    def offered(self, conversation: Conversation) -> tuple[str, ...]:
        return tuple(
            name for name in conversation.tools if not registry.is_tool_off(name)
        )

    def count_tool_tokens(self, names: Sequence[str]) -> Mapping[str, int]:
        return registry.count_tool_tokens(names)

    def outcomes(self, conversation: Conversation) -> Mapping[tuple[int, int], str]:
        rows = conversation.tool_calls.values_list("request__seq", "place", "state")
        return {
            (seq, place): str(ToolCall.State(state).label) for seq, place, state in rows
        }

    def shorten_again(self, text: str, sent: str, seq: int) -> str:
        if results.is_shortened(text, sent):
            return sent
        return results.refine(text, None, seq).sent

    def find_sources(
        self,
        conversation: Conversation,
        numbers: Sequence[int],
        shown: QuerySet[Message] | None,
    ) -> Mapping[int, FoundSource]:
        return result_files.find_sources(conversation, numbers, shown)

    def label(self, name: str) -> str:
        return registry.label_of(name)

    def defaults(self) -> list[str]:
        return registry.defaults()


def _load_tool_loop() -> ModuleType:
    # LangGraph takes a fifth of a second to import, which most commands can spare.
    from . import loop

    return loop
