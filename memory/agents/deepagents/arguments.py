"""Old calls that write files, with long texts cut before any summary.

The messages of the thread stay as they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.messages import BaseMessage
from typing_extensions import TypedDict

from ...engine.tokens import TokenCounter
from ...engine.tools.shorten import ARGUMENT_MARK, clip_tool_args
from ..middleware import LANGCHAIN_KEEP
from ..view import AgentView

# Tools whose arguments are the content of files.
WRITING_TOOLS = frozenset({"write_file", "edit_file"})
MAX_CHARS = 2000


class TruncateArgsSettings(TypedDict, total=False):
    """The settings for cutting arguments.

    `trigger` and `keep` are sizes such as `("messages", 20)`; without a trigger,
    nothing is cut. A text over `max_length` characters keeps 20, followed by
    `truncation_text`.
    """

    trigger: Any
    keep: Any
    max_length: int
    truncation_text: str


@dataclass(frozen=True, slots=True)
class ArgumentCutter:
    """A cutter of old arguments in requests that reach the settings' trigger.

    A fraction is one of `context_window`; if that is unknown, it is never reached.
    """

    settings: TruncateArgsSettings
    count_tokens: TokenCounter
    context_window: int | None

    def cut_arguments(self, view: AgentView, beside: int) -> AgentView:
        """Return the view with cut arguments.

        `beside`: tokens of the system prompt and the tools.
        """
        window = view.context.get_section("window")
        shown = [*window, *view.context.get_section("newest")]
        trigger = self.settings.get("trigger")
        if not trigger or not self._is_reached(trigger, view, len(shown), beside):
            return view
        old = shown[: self._find_recent(shown)]
        shorter = clip_tool_args(
            old,
            self.settings.get("max_length", MAX_CHARS),
            mark=self.settings.get("truncation_text", ARGUMENT_MARK),
            tools=WRITING_TOOLS,
        )
        saved = self.count_tokens(old) - self.count_tokens(shorter)
        cut, end = [*shorter, *shown[len(old) :]], len(window)
        context = view.context.with_section("window", cut[:end])
        context = context.with_section("newest", cut[end:])
        return replace(view, context=context, window_tokens=view.window_tokens - saved)

    def _is_reached(
        self, trigger: tuple[str, float], view: AgentView, messages: int, beside: int
    ) -> bool:
        size = view.tokens + beside
        if trigger[0] == "messages":
            size = messages + bool(view.blocks)
        limit = self._find_limit(trigger)
        return limit is not None and size >= limit

    def _find_limit(self, size: tuple[str, float]) -> float | None:
        kind, amount = size
        if kind != "fraction":
            return amount
        return (
            max(1, int(self.context_window * amount)) if self.context_window else None
        )

    def _find_recent(self, messages: Sequence[BaseMessage]) -> int:
        """Return the index of the first message that is left as it is."""
        keep = self.settings.get("keep", LANGCHAIN_KEEP)
        room = self._find_limit(keep)
        if keep[0] == "messages" or room is None:
            return max(0, len(messages) - int(room or LANGCHAIN_KEEP[1]))
        start = len(messages)
        for message in reversed(messages):
            room -= self.count_tokens([message])
            if room < 0:
                break
            start -= 1
        return start
