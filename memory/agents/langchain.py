"""LangChain's `SummarizationMiddleware` over the engine: only the import changes.

The arguments are read by LangChain's own class, so they mean what they mean in the
version that is installed. README.md has the differences.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import ceil
from typing import Any

from langchain.agents.middleware import SummarizationMiddleware as Original
from langchain.agents.middleware.summarization import DEFAULT_SUMMARY_PROMPT
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.messages.utils import count_tokens_approximately

from ..engine.policy import MAX_SIZE, Clause, ContextSize, Policy, Trigger
from ..engine.tokens import TokenCounter, count_tokens
from .middleware import (
    LANGCHAIN_KEEP,
    MESSAGES,
    PROMPTS,
    When,
    WindowpaneMiddleware,
    load_model,
)

# Claude's tokens are shorter than the usual four characters; LangChain's own measure.
CLAUDE_CHARS_PER_TOKEN = 3.3
# A deprecated argument warns if it is given, even as None.
NOT_GIVEN: Any = object()


@dataclass(kw_only=True, eq=False, repr=False)
class SummarizationMiddleware(WindowpaneMiddleware):
    """LangChain's class, with the other arguments of `WindowpaneMiddleware`.

    Raises what LangChain's raises for a wrong argument: ValueError or TypeError.
    """

    # Can be set later too, as in LangChain's class.
    token_counter: TokenCounter = count_tokens_approximately
    summary_prompt: str = DEFAULT_SUMMARY_PROMPT
    policy: Policy | None = field(default=None, init=False)
    when: When = "before"
    max_tokens_before_summary: Any = NOT_GIVEN
    messages_to_keep: Any = NOT_GIVEN

    def __post_init__(self) -> None:
        if (most := self.max_tokens_before_summary) is not NOT_GIVEN:
            warn_of("max_tokens_before_summary", "trigger=('tokens', value)")
            if self.trigger is None and most is not None:
                self.trigger = ("tokens", most)
        if self.messages_to_keep is not NOT_GIVEN:
            warn_of("messages_to_keep", "keep=('messages', value)")
            if self.keep == LANGCHAIN_KEEP:
                self.keep = ("messages", self.messages_to_keep)
        self.summarizer = load_model(self.summarizer)
        read = Original(
            self.model,
            trigger=self.trigger,
            keep=self.keep,
            summary_prompt=self.summary_prompt,
            trim_tokens_to_summarize=self.trim_tokens_to_summarize,
            summarizer=self.summarizer,
        )
        self.model, self.trigger, self.keep = read.model, read.trigger, read.keep
        if self.token_counter is count_tokens_approximately:
            self.token_counter = make_counter(read.model)
        super().__post_init__()

    def _make_policy(self) -> Policy:
        """Return the policy of arguments that LangChain's class has accepted.

        A policy refuses to keep what triggers it. Here there is nothing to do until
        there is more than that, so the values are not checked again. LangChain's usual
        prompt describes the form of a summary; a schema replaces it.
        """
        try:
            prompt = self.summary_prompt.format(messages=MESSAGES)
        except (LookupError, ValueError):
            # Other braces, as of JSON, with which LangChain's class fails at its first
            # use.
            prompt = self.summary_prompt.replace("{messages}", MESSAGES)
        sizes = {"trigger": parse_trigger(self.trigger), "keep": parse_size(*self.keep)}
        if self.schema is None or self.summary_prompt != DEFAULT_SUMMARY_PROMPT:
            sizes |= dict.fromkeys(PROMPTS, prompt)
        form = {} if self.schema is None else {"profile": self.schema}
        trim = self.trim_tokens_to_summarize
        policy = Policy.from_langchain(
            trigger=[], trim_tokens_to_summarize=trim, **form
        )
        return policy.model_copy(update=sizes)


def warn_of(name: str, better: str) -> None:
    """Warn the caller of the constructor that a name is deprecated."""
    message = f"{name} is deprecated. Use {better} instead."
    warnings.warn(message, DeprecationWarning, stacklevel=4)


def make_counter(model: BaseChatModel) -> TokenCounter:
    """Return LangChain's estimate for the model, or the engine's if that is more.

    Of Chinese text, LangChain's finds a third.
    """
    approximate: TokenCounter = count_tokens_approximately
    if model._llm_type.startswith("anthropic-chat"):
        approximate = partial(approximate, chars_per_token=CLAUDE_CHARS_PER_TOKEN)

    def count(messages: Sequence[BaseMessage]) -> int:
        return max(approximate(messages), count_tokens(messages))

    return count


def parse_trigger(trigger: Any) -> Trigger:
    """Return the trigger in the engine's form.

    `None` and `[]` never trigger; a tuple is one condition, a dict several that must
    all hold, and of a list one must hold.
    """
    items = trigger if isinstance(trigger, list) else [trigger] if trigger else []

    def parse_clause(item: Any) -> Clause:
        pairs = item.items() if isinstance(item, Mapping) else [item]
        return tuple(parse_size(kind, amount) for kind, amount in pairs)

    return tuple(map(parse_clause, items))


def parse_size(kind: str, amount: float) -> ContextSize:
    """Return a size with whole numbers: 4000.0 is 4000, and 4001 reaches 4000.5."""
    return kind, amount if kind == "fraction" else min(ceil(amount), MAX_SIZE)
