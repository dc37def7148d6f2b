"""LangChain's `SummarizationMiddleware` over the engine: a change of import is enough.

The arguments are read by LangChain's own class, so they mean what they mean in the
version that is installed. What is different is in README.md.
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
# A deprecated argument warns where it is given, None as any other value.
NOT_GIVEN: Any = object()


@dataclass(kw_only=True, eq=False, repr=False)
class SummarizationMiddleware(WindowpaneMiddleware):
    """Takes what LangChain's class takes, and what `WindowpaneMiddleware` does beside.

    Raises what LangChain's raises for a wrong argument: ValueError or TypeError.
    """

    # May be set later, too, as in LangChain's class.
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
        """From arguments that LangChain's class has accepted.

        A policy refuses to keep what triggers it. Here there is nothing to do until
        there is more than that, so the values are not checked again. LangChain's usual
        prompt gives the form of a summary, in place of which a schema may come.
        """
        try:
            prompt = self.summary_prompt.format(messages=MESSAGES)
        except (LookupError, ValueError):
            # Other braces, as of JSON, which would stop LangChain's at its first use.
            prompt = self.summary_prompt.replace("{messages}", MESSAGES)
        sizes = {
            "trigger": parse_trigger(self.trigger),
            "keep": parse_size(*self.keep),
        }
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
    """LangChain's estimate for the model, or the engine's where that is more: of
    Chinese text, LangChain's finds a third."""
    approximate: TokenCounter = count_tokens_approximately
    if model._llm_type.startswith("anthropic-chat"):
        approximate = partial(approximate, chars_per_token=CLAUDE_CHARS_PER_TOKEN)

    def count(messages: Sequence[BaseMessage]) -> int:
        return max(approximate(messages), count_tokens(messages))

    return count


def parse_trigger(trigger: Any) -> Trigger:
    """`None` and `[]` never trigger; a tuple is a condition, a dict several that have
    to hold together, and of a list one has to."""
    items = trigger if isinstance(trigger, list) else [trigger] if trigger else []

    def parse_clause(item: Any) -> Clause:
        pairs = item.items() if isinstance(item, Mapping) else [item]
        return tuple(parse_size(kind, amount) for kind, amount in pairs)

    return tuple(map(parse_clause, items))


def parse_size(kind: str, amount: float) -> ContextSize:
    """Counts as whole numbers: 4000.0 is 4000, and 4000.5 is reached by 4001."""
    return kind, amount if kind == "fraction" else min(ceil(amount), MAX_SIZE)
