"""Deep Agents' default numbers, and the middleware that has them."""

from typing import Any

from langchain.agents.middleware.summarization import DEFAULT_SUMMARY_PROMPT
from langchain.chat_models import init_chat_model
from langchain_core.language_models import BaseChatModel
from langchain_core.messages.utils import count_tokens_approximately

from ...engine.tokens import TokenCounter
from ..summarizers import Summarizer, find_window
from .backend import Backend
from .middleware import SummarizationMiddleware
from .tool import SummarizationToolMiddleware


def compute_summarization_defaults(model: BaseChatModel) -> dict[str, Any]:
    """Return shares of the model's window if its profile has one, else numbers."""
    if find_window(model):
        shares = {"trigger": ("fraction", 0.85), "keep": ("fraction", 0.10)}
        return shares | {"truncate_args_settings": shares}
    arguments = {"trigger": ("messages", 20), "keep": ("messages", 20)}
    sizes = {"trigger": ("tokens", 170_000), "keep": ("messages", 6)}
    return sizes | {"truncate_args_settings": arguments}


def create_summarization_middleware(
    model: BaseChatModel,
    backend: Backend,
    *,
    summary_prompt: str = DEFAULT_SUMMARY_PROMPT,
    trim_tokens_to_summarize: int | None = None,
    token_counter: TokenCounter = count_tokens_approximately,
    summarizer: str | Summarizer | None = None,
) -> SummarizationMiddleware:
    """Return the middleware with the numbers that suit the model.

    Raises TypeError for a model's name.
    """
    if not isinstance(model, BaseChatModel):
        raise TypeError(f"expected a BaseChatModel, got {type(model).__name__}")
    return SummarizationMiddleware(
        model,
        backend=backend,
        summary_prompt=summary_prompt,
        trim_tokens_to_summarize=trim_tokens_to_summarize,
        token_counter=token_counter,
        summarizer=summarizer,
        **compute_summarization_defaults(model),
    )


def create_summarization_tool_middleware(
    model: str | BaseChatModel, backend: Backend, *, system_prompt: str | None = None
) -> SummarizationToolMiddleware:
    """Return a middleware with the tool alone.

    If the agent has a `SummarizationMiddleware`, give that one to
    `SummarizationToolMiddleware` instead: two would keep two memories of a thread.
    """
    model = init_chat_model(model) if isinstance(model, str) else model
    engine = create_summarization_middleware(model, backend)
    return SummarizationToolMiddleware(engine, system_prompt=system_prompt)
