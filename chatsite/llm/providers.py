"""LangChain models by name, and their providers.

A provider is one of PROVIDERS_FILE, else the one of OPENAI_*. The module knows
settings, but no conversation.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import date
from fnmatch import fnmatchcase
from functools import lru_cache, partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _
from langchain_core.language_models import BaseChatModel
from pydantic import BaseModel

from . import known_models
from .demo.chat_model import DEMO, DemoChatModel
from .local import servers
from .provider_file import Model, ModelProvider, Prices

if TYPE_CHECKING:
    from .langchain.chat_model import LangChainChat

    ChatModel = BaseChatModel | LangChainChat

OPENAI_HOST = "api.openai.com"
DEFAULT_CONTEXT_WINDOW = 32_000
# Self-hosted servers often need no key, but the client insists on one.
PLACEHOLDER_KEY = "no-key-needed"
CONNECT_TIMEOUT = 10.0


def default_model() -> str:
    if settings.CHAT_MODEL:
        return settings.CHAT_MODEL
    if settings.PROVIDERS:
        return settings.PROVIDERS[0].models[0].name
    has_provider = settings.OPENAI_API_KEY or settings.OPENAI_BASE_URL
    return known_models.DEFAULT_MODEL if has_provider else DEMO


def list_models() -> list[str]:
    """Return the models that the site is set up with, its own first.

    The users who may use them are in chatsite/turns/model_access.py.
    """
    others = settings.CHAT_MODELS
    if settings.PROVIDERS:
        others = [model.name for each in settings.PROVIDERS for model in each.models]
    local = [model.name for each in servers.list_servers() for model in each.models]
    return list(dict.fromkeys([default_model(), *others, *local]))


def _list_providers() -> tuple[ModelProvider, ...]:
    return (*settings.PROVIDERS, *servers.list_servers())


def find_provider(name: str) -> ModelProvider | None:
    """Return the provider of the model; None: the site has no such one.

    In the short form one provider runs every model that is asked of it.
    """
    if is_demo(name):
        return None
    # What was said to a server of this machine goes to no other.
    if not settings.PROVIDERS and not servers.is_local(name):
        return read_short_form()
    return next((each for each in _list_providers() if _pick(each, name)), None)


def find_model(name: str) -> Model:
    """Return the settings of a model.

    All have their defaults for a model that the site does not have.
    """
    if settings.PROVIDERS or servers.is_local(name):
        found = (_pick(each, name) for each in _list_providers())
        return next(filter(None, found), Model.model_construct(name=name))
    told = settings.CONTEXT_WINDOW, settings.PRICE_INPUT, settings.PRICE_OUTPUT
    return _describe_model(name, *told, tuple(settings.IMAGE_MODELS))


# A turn asks a dozen times for what the same few settings say.
@lru_cache
def _describe_model(
    name: str, window: int, read: float, written: float, with_images: tuple[str, ...]
) -> Model:
    takes_images = any(fnmatchcase(name, each) for each in with_images)
    return Model.model_construct(
        name=name,
        window=window or None,
        images=takes_images if with_images else None,
        prices=Prices(input=read, output=written),
    )


def _pick(provider: ModelProvider, name: str) -> Model | None:
    return next((each for each in provider.models if each.name == name), None)


def read_short_form() -> ModelProvider:
    """Return the one provider of OPENAI_* and the settings beside them."""
    return _make_provider(
        name=settings.PROVIDER_NAME,
        base_url=settings.OPENAI_BASE_URL,
        key=settings.OPENAI_API_KEY,
        system_role=settings.SYSTEM_ROLE,
        stream_usage=settings.STREAM_USAGE,
        structured_output=settings.STRUCTURED_OUTPUT,
        models=(),
    )


@lru_cache
def _make_provider(**told: Any) -> ModelProvider:
    return ModelProvider.model_construct(**told)


def name_provider(name: str) -> str:
    """Return the provider's name as pages show it; "" for the demo model."""
    provider = find_provider(name)
    if provider is None:
        return ""
    host = find_provider_host(provider)
    return (provider.name or ("OpenAI" if host == OPENAI_HOST else host))[:100]


def find_host(name: str) -> str:
    """Return the host of the server that runs the model; "" for the demo model."""
    return find_provider_host(find_provider(name))


def find_provider_host(provider: ModelProvider | None) -> str:
    """Return the host of the base URL, which can hold a password.

    "" where that is no full address, or there is no provider.
    """
    if provider is None or provider.is_openai:
        return OPENAI_HOST if provider else ""
    if not provider.base_url:
        return provider.langchain_name
    try:
        parts = urlsplit(provider.base_url)
        # A port that is none raises as it is read.
        is_full = parts.scheme in ("http", "https") and parts.port != 0
    except ValueError:
        return ""
    return (parts.hostname or "") if is_full else ""


def summary_model(chat_model: str) -> str:
    """Return the model that summarises for conversations with `chat_model`."""
    if is_demo(chat_model):
        return DEMO
    return settings.SUMMARY_MODEL or chat_model


def list_shutdowns() -> list[tuple[str, date]]:
    """Return the site's models that OpenAI shuts down, each with the day, in order."""
    chosen = dict.fromkeys([*list_models(), summary_model(default_model())])
    found = [(n, known_models.find_shutdown(n)) for n in chosen if _is_openai(n)]
    return sorted(((n, day) for n, day in found if day), key=itemgetter(1))


def explain_shutdown(name: str, day: date) -> str:
    """Return what ends, when, and what to do, in one sentence."""
    told = _(
        "%(model)s is shut down by OpenAI on %(day)s, and its replies fail from "
        "then on: name another model in %(settings)s, such as %(better)s."
    )
    if day <= timezone.localdate():
        told = _(
            "%(model)s was shut down by OpenAI on %(day)s, so its replies fail: "
            "name another model in %(settings)s, such as %(better)s."
        )
    places = [
        s for s in ("CHAT_MODEL", "SUMMARY_MODEL") if getattr(settings, s) == name
    ]
    places += ["CHAT_MODELS"] if name in settings.CHAT_MODELS else []
    places += ["PROVIDERS_FILE"] if settings.PROVIDERS else []
    return gettext(told) % {
        "model": name,
        "day": day.isoformat(),
        "settings": ", ".join(places),
        "better": known_models.DEFAULT_MODEL,
    }


def is_demo(name: str) -> bool:
    return name == DEMO


def name_model(name: str) -> str:
    if servers.is_small(name):
        return gettext("%(model)s (very small, often wrong)") % {"model": name}
    return gettext("Demo model") if is_demo(name) else name


def context_window(name: str) -> int:
    """Return the number of tokens that the model takes.

    It is the configured number, else LangChain's, else DEFAULT_CONTEXT_WINDOW.
    """
    if window := find_model(name).window:
        return window
    return read_profile(name).get("max_input_tokens") or DEFAULT_CONTEXT_WINDOW


def read_profile(name: str) -> Mapping[str, Any]:
    """Return what LangChain knows of a model.

    Empty for a server that is only compatible with OpenAI's, and for a model that can't
    be made.
    """
    if not (_is_openai(name) or find_model(name).model):
        return {}
    with suppress(LookupError):
        return build(name).profile or {}
    return {}


def _is_openai(name: str) -> bool:
    """Return True if OpenAI itself runs the model.

    Less is known of other servers.
    """
    provider = find_provider(name)
    return provider is not None and provider.is_openai


def uses_responses_api(name: str) -> bool:
    """Return True if the model is asked through OpenAI's Responses API."""
    told = find_model(name).use_responses_api
    if told is None:
        return _is_openai(name) and bool(known_models.RESPONSES_ONLY.match(name))
    return told


def cache_options(name: str, key: str) -> dict[str, str]:
    """Return arguments that let OpenAI find its prompt cache for conversation `key`.

    Other servers may refuse a request with a field they do not know.
    """
    return {"prompt_cache_key": key} if _is_openai(name) else {}


def schema_options(name: str, schema: type[BaseModel] | None) -> dict[str, Any]:
    """Return arguments that hold the reply to a schema, where the provider can."""
    provider = find_provider(name)
    if schema is None or provider is None or not provider.can_hold_schemas:
        return {}
    wanted = {"name": schema.__name__, "schema": schema.model_json_schema()}
    return {"response_format": {"type": "json_schema", "json_schema": wanted}}


def sampling_options(
    name: str, temperature: float | None, max_tokens: int = 0
) -> dict[str, Any]:
    """Return arguments for how a reply is written; none where nothing is set."""
    provider = find_provider(name)
    if provider is None:
        return {}
    set_for = (provider.options, find_model(name).options)
    options: dict[str, Any] = {}
    for each in set_for:
        options |= each.model_dump(exclude_none=True)
    if uses_responses_api(name):
        effort = options.pop("reasoning_effort", None)
        told = {"effort": effort} if effort else {}
        options["reasoning"] = {**told, "summary": "auto"}
    if temperature is not None:
        options["temperature"] = temperature
    if max_tokens:
        # OpenAI refuses the older name, and other servers do not know the newer one.
        is_newer = _is_openai(name)
        options["max_completion_tokens" if is_newer else "max_tokens"] = max_tokens
    return options


class _Builder:
    """The callable `build(name)`, which makes each chat model once per event loop.

    A client keeps connections open, and a connection belongs to the loop it was opened
    on; a model made for a loop that is gone fails on its next request.
    """

    def __init__(self) -> None:
        self._by_loop: WeakKeyDictionary[Any, dict[str, ChatModel]]
        self.cache_clear()

    def __call__(self, name: str) -> "ChatModel":
        loop = _running_loop()
        models = self._by_loop.get(loop)
        if models is None:
            models = self._by_loop[loop] = {}
            if loop is not _NO_LOOP:
                close_at_loop_end(partial(_close_models, models))
        if name not in models:
            models[name] = _make_model(name)
        return models[name]

    def cache_clear(self) -> None:
        self._by_loop = WeakKeyDictionary()

    async def close(self) -> None:
        """Close what the models of this event loop have open."""
        await _close_models(self._by_loop.pop(_running_loop(), {}))


_keepers: set[AsyncGenerator[None, None]] = set()


def close_at_loop_end(close: Callable[[], Awaitable[object]]) -> None:
    """Call `close` when the running event loop ends.

    A loop that ends closes the async generators that were started in it.
    """

    async def keep() -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            _keepers.discard(keeper)
            await close()

    keeper = keep()
    _keepers.add(keeper)
    with suppress(StopIteration):
        anext(keeper).send(None)


async def _close_models(models: dict[str, "ChatModel"]) -> None:
    for model in models.values():
        if client := getattr(model, "root_async_client", None):
            await client.close()
    models.clear()


class _NoLoop:
    """The key of the models that are built where no loop is running."""


_NO_LOOP = _NoLoop()


def _running_loop() -> Any:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return _NO_LOOP


def _make_model(name: str) -> "ChatModel":
    if is_demo(name):
        return DemoChatModel(tokens_per_second=settings.DEMO_TOKENS_PER_SECOND)
    provider = find_provider(name)
    if provider is None:
        raise LookupError(name)
    if asked := find_model(name).model:
        from .langchain import chat_model

        return chat_model.make_langchain_chat(name, provider, asked)
    from . import openai_chat

    kind = openai_chat.OpenAIChat
    if uses_responses_api(name):
        from .langchain import responses_chat

        kind = responses_chat.ResponsesChat
    return openai_chat.make_openai_chat(
        servers.find_model_id(name, provider),
        key=provider.secret or PLACEHOLDER_KEY,
        base_url=provider.base_url,
        connect_timeout=CONNECT_TIMEOUT,
        kind=kind,
        default_headers=provider.sent_headers,
        default_query=provider.sent_query,
    )


build = _Builder()
