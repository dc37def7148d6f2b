"""The keywords of LangMem's `summarize_messages`, with their prompts."""

from dataclasses import dataclass, field
from functools import cached_property

from langchain_core.language_models import LanguageModelLike
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.prompts import ChatPromptTemplate

from ...engine.tokens import TokenCounter
from ..failures import Failures, OnFailure

DEFAULT_INITIAL_SUMMARY_PROMPT = ChatPromptTemplate.from_messages(
    [
        ("placeholder", "{messages}"),
        ("user", "Create a summary of the conversation above:"),
    ]
)
DEFAULT_EXISTING_SUMMARY_PROMPT = ChatPromptTemplate.from_messages(
    [
        ("placeholder", "{messages}"),
        (
            "user",
            "This is summary of the conversation so far: {existing_summary}\n\n"
            "Extend this summary by taking into account the new messages above:",
        ),
    ]
)
DEFAULT_FINAL_SUMMARY_PROMPT = ChatPromptTemplate.from_messages(
    [
        ("placeholder", "{system_message}"),
        ("system", "Summary of the conversation so far: {summary}"),
        ("placeholder", "{messages}"),
    ]
)
# The slots that a prompt must have; without one its content would be lost.
SLOTS = {
    "initial_summary_prompt": {"messages"},
    "existing_summary_prompt": {"messages", "existing_summary"},
    "final_prompt": {"messages", "summary"},
}


@dataclass(kw_only=True, eq=False)
class Options:
    """The keywords that `summarize_messages` and `SummarizationNode` have in common.

    A summary is due once the first messages have `max_tokens_before_summary` (or
    `max_tokens`); so many of them are summarised that the others, the system message
    and `max_summary_tokens` fit into `max_tokens`. One request of the summariser reads
    what its profile allows, or else `max_tokens`; more takes several. A call waits for
    `timeout` seconds at most; `on_failure` gets the error of a summary that could not
    be made. Raises ValueError.
    """

    model: LanguageModelLike
    max_tokens: int
    max_tokens_before_summary: int | None = None
    max_summary_tokens: int = 256
    token_counter: TokenCounter = count_tokens_approximately
    initial_summary_prompt: ChatPromptTemplate = field(
        default_factory=lambda: DEFAULT_INITIAL_SUMMARY_PROMPT
    )
    existing_summary_prompt: ChatPromptTemplate = field(
        default_factory=lambda: DEFAULT_EXISTING_SUMMARY_PROMPT
    )
    final_prompt: ChatPromptTemplate = field(
        default_factory=lambda: DEFAULT_FINAL_SUMMARY_PROMPT
    )
    timeout: float = 60.0
    on_failure: OnFailure | None = None

    def __post_init__(self) -> None:
        if self.max_summary_tokens >= self.max_tokens:
            raise ValueError("`max_summary_tokens` must be less than `max_tokens`.")
        for name, slots in SLOTS.items():
            if missing := slots - find_slots(getattr(self, name)):
                raise ValueError(f"{name}: expected a place for {sorted(missing)}")

    @cached_property
    def failures(self) -> Failures:
        return Failures(self.on_failure)

    @property
    def least(self) -> int:
        """The tokens at which messages are due to be summarised."""
        before = self.max_tokens_before_summary
        return self.max_tokens if before is None else before


def find_slots(prompt: ChatPromptTemplate) -> set[str]:
    return {*prompt.input_variables, *prompt.optional_variables}
