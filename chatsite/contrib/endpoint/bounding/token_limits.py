"""Token limits of requests, and whether this site can bound them at all."""

import json
from collections.abc import Mapping
from typing import Any

from django.conf import settings

from chatsite.contrib.endpoint.apis.api import Api
from chatsite.llm import providers
from memory import context
from memory.engine.tokens import count_text

# The context window of Anthropic's models, in tokens.
ANTHROPIC_WINDOW = 200_000
# Fields that a model reads besides messages, and those that limit its reply.
BESIDE = ("tools", "functions", "response_format", "text")
REPLY = ("max_completion_tokens", "max_tokens", "max_output_tokens")


def can_summarise(api: Api) -> bool:
    """Return whether the summarising model is as good as the answering one.

    The demo model must not summarise what a provider is asked.
    """
    model = providers.default_model()
    is_demo = providers.is_demo(model)
    return not is_demo or api.find_upstream(model) is None


def find_limit(api: Api, model: str, body: Mapping[str, Any]) -> int:
    """Return the tokens that a request may have besides the reply.

    At least a quarter of the window.
    """
    window = _find_window(api, model)
    limit = context.request_limit(window)
    for name in REPLY:
        if isinstance(wanted := body.get(name), int) and wanted > 0:
            # More exact than the site's reserve for any reply.
            limit = window - wanted
    return max(limit, window // 4, 1)


def _find_window(api: Api, model: str) -> int:
    if settings.CONTEXT_WINDOW:
        return settings.CONTEXT_WINDOW
    if api.find_upstream(model) is None:
        return providers.context_window(providers.DEMO)
    if api.name == "messages":
        return ANTHROPIC_WINDOW
    # A model is built and cached to know its window: only those of the operator.
    is_known = model in providers.list_models()
    return providers.context_window(model if is_known else providers.default_model())


def count_beside(body: Mapping[str, Any]) -> int:
    """Return the estimated tokens of the fields besides the messages."""
    values = [body[name] for name in BESIDE if body.get(name)]
    return sum(count_text(json.dumps(each, ensure_ascii=False)) for each in values)
