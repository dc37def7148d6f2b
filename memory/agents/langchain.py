"""LangChain's `SummarizationMiddleware` over the engine: a change of import is enough.

The arguments are read by LangChain's own class, so they mean what they mean in the
version that is installed. What is different is in README.md.
"""

import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from math import ceil
from typing import Any

from langchain.agents.middleware import SummarizationMiddleware as Original
from langchain.agents.middleware.summarization import DEFAULT_SUMMARY_PROMPT
from langchain.chat_models import init_chat_model
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.messages.utils import count_tokens_approximately
from pydantic import BaseModel

from ..engine.policy import MAX_SIZE, Clause, ContextSize, Policy, Trigger
from ..engine.tokens import TokenCounter, count_tokens
from .failures import OnFailure
from .middleware import LANGCHAIN_KEEP, When, WindowpaneMiddleware
from .stores import MemoryStore
from .summarizers import Summarizer

# Claude's tokens are shorter than the usual four characters; LangChain's own measure.
CLAUDE_CHARS_PER_TOKEN = 3.3
# Where LangChain's prompts have the messages. Here they come as a message of their own.
MESSAGES = "(in the next message)"
# A deprecated argument warns where it is given, None as any other value.
NOT_GIVEN: Any = object()


class SummarizationMiddleware(WindowpaneMiddleware):
    """Takes what LangChain's class takes, and what `WindowpaneMiddleware` does beside.

    Raises what LangChain's raises for a wrong argument: ValueError or TypeError.
    """

    def __init__(
        self,
        model: str | BaseChatModel,
        *,
        trigger: Any = None,
        keep: Any = LANGCHAIN_KEEP,
        token_counter: TokenCounter = count_tokens_approximately,
        summary_prompt: str = DEFAULT_SUMMARY_PROMPT,
        trim_tokens_to_summarize: int | None = 4000,
        summarizer: str | Summarizer | None = None,
        schema: type[BaseModel] | None = None,
        store: MemoryStore | None = None,
        when: When = "before",
        background: bool = True,
        compaction_timeout: float = 60.0,
        backoff: float = 30.0,
        on_failure: OnFailure | None = None,
        max_tokens_before_summary: Any = NOT_GIVEN,
        messages_to_keep: Any = NOT_GIVEN,
    ) -> None:
        if max_tokens_before_summary is not NOT_GIVEN:
            warn_of("max_tokens_before_summary", "trigger=('tokens', value)")
            if trigger is None and max_tokens_before_summary is not None:
                trigger = ("tokens", max_tokens_before_summary)
        if messages_to_keep is not NOT_GIVEN:
            warn_of("messages_to_keep", "keep=('messages', value)")
            if keep == LANGCHAIN_KEEP:
                keep = ("messages", messages_to_keep)
        if isinstance(summarizer, str):
            summarizer = init_chat_model(summarizer)
        read = Original(
            model,
            trigger=trigger,
            keep=keep,
            summary_prompt=summary_prompt,
            trim_tokens_to_summarize=trim_tokens_to_summarize,
            summarizer=summarizer,
        )
        self.trigger, self.keep = read.trigger, read.keep
        self.summary_prompt = summary_prompt
        self.trim_tokens_to_summarize = trim_tokens_to_summarize
        # May be set later, too, as in LangChain's class.
        self.token_counter = token_counter
        if token_counter is count_tokens_approximately:
            self.token_counter = make_counter(read.model)
        super().__init__(
            read.model,
            policy=make_langchain_policy(
                self.trigger,
                self.keep,
                summary_prompt,
                trim_tokens_to_summarize,
                schema,
            ),
            token_counter=lambda messages: self.token_counter(messages),
            summarizer=summarizer,
            store=store,
            when=when,
            background=background,
            compaction_timeout=compaction_timeout,
            backoff=backoff,
            on_failure=on_failure,
        )


def warn_of(name: str, better: str) -> None:
    """Warn the caller of the constructor that a name is deprecated."""
    message = f"{name} is deprecated. Use {better} instead."
    warnings.warn(message, DeprecationWarning, stacklevel=3)


def make_counter(model: BaseChatModel) -> TokenCounter:
    """LangChain's estimate for the model, or the engine's where that is more: of
    Chinese text, LangChain's finds a third."""
    approximate: TokenCounter = count_tokens_approximately
    if model._llm_type.startswith("anthropic-chat"):
        approximate = partial(approximate, chars_per_token=CLAUDE_CHARS_PER_TOKEN)

    def count(messages: Sequence[BaseMessage]) -> int:
        return max(approximate(messages), count_tokens(messages))

    return count


def make_langchain_policy(
    trigger: Any,
    keep: Any,
    summary_prompt: str,
    trim_tokens: int | None,
    schema: type[BaseModel] | None,
) -> Policy:
    """From arguments that LangChain's class has accepted.

    A policy refuses to keep what triggers it. Here there is nothing to do until there
    is more than that, so the values are not checked again. LangChain's usual prompt
    gives the form of a summary, in place of which a schema may come.
    """
    try:
        prompt = summary_prompt.format(messages=MESSAGES)
    except (LookupError, ValueError):
        # Other braces, as of JSON, which would stop LangChain's class at its first use.
        prompt = summary_prompt.replace("{messages}", MESSAGES)
    prompts = dict.fromkeys(("initial_prompt", "extend_prompt", "merge_prompt"), prompt)
    values = {"trigger": parse_trigger(trigger), "keep": parse_size(*keep)}
    if schema is None or summary_prompt != DEFAULT_SUMMARY_PROMPT:
        values |= prompts
    form = {} if schema is None else {"profile": schema}
    policy = Policy.langchain(trigger=[], trim_tokens_to_summarize=trim_tokens, **form)
    return policy.model_copy(update=values)


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
