"""The answer to a request, from the provider or from the demo model.

Either way it is a status, headers and bytes.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import aiohttp
from django.conf import settings
from langchain_core.messages import BaseMessage

from chatsite.contrib.endpoint.apis.api import Api
from chatsite.contrib.endpoint.apis.errors import ApiError
from chatsite.contrib.endpoint.store.parsed_request import ParsedRequest
from chatsite.llm import providers, streaming
from chatsite.turns import model_access
from memory.engine.exceptions import is_too_long

from .upstream import Upstream, select_headers, send_upstream

# The most that is read of an error.
MAX_ERROR_BYTES = 1_000_000
# What the key is sent in, and the length from which another header may hold one.
KEY_HEADERS, LEAST_SECRET = ("authorization", "api-key", "x-api-key"), 16
# How long a provider's list of models is cached.
MODELS_SECONDS = 30.0
_Models = asyncio.Task[list[dict[str, Any]]]
# By address: when a provider was asked, and its answer.
_listed: dict[str, tuple[float, _Models]] = {}
# The error code of an attempt, by the provider's status.
CODES = {
    **{400: "bad_request", 401: "auth", 403: "auth", 404: "bad_request"},
    **{413: "context_length", 408: "timeout", 429: "rate_limited"},
}


class CutError(Exception):
    """Raised if an answer ends too early; `code` says why."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(slots=True)
class ProviderAnswer:
    """An answer whose `chunks` yield its bytes as they come, or raise CutError.

    `said` holds all bytes of an error.
    """

    status: int
    headers: Mapping[str, str]
    chunks: AsyncIterator[bytes]
    said: bytes = b""

    @property
    def kind(self) -> str:
        return self.headers.get("content-type", "")

    @property
    def is_error(self) -> bool:
        return self.status >= 400

    @property
    def is_too_long(self) -> bool:
        """True if the provider refuses the request for its length."""
        return is_too_long(self.status, self.said.decode("utf-8", "replace"))

    @property
    def code(self) -> str:
        return CODES.get(self.status, "unavailable")


async def fetch_answer(
    request: ParsedRequest,
    headers: Mapping[str, str],
    earlier: Sequence[BaseMessage] = (),
) -> ProviderAnswer:
    """Fetch the answer to a request.

    `earlier` holds messages for the demo model that are not in the body. Raise
    ApiError where there is no answer that a client of the API could read.
    """
    upstream = request.api.find_upstream(request.model)
    if upstream is None:
        return _answer_as_demo(request, earlier)
    seconds = settings.MODEL_TOTAL_TIMEOUT
    if request.is_stream:
        seconds = settings.MODEL_FIRST_TOKEN_TIMEOUT
    path, raw = request.api.upstream_path, request.raw
    return await ask_provider("POST", upstream, path, headers, raw, seconds)


async def fetch_count(
    api: Api, model: str, headers: Mapping[str, str], raw: bytes
) -> ProviderAnswer:
    """Return the provider's token count of a body; without one, an estimate."""
    upstream = api.find_upstream(model)
    if upstream is None:
        return make_json_answer({"input_tokens": -(-len(raw) // 4)})
    return await ask_provider("POST", upstream, api.count_path, headers, raw)


def make_json_answer(value: Mapping[str, Any]) -> ProviderAnswer:
    """Return an answer that this site writes itself, without a provider."""
    body = json.dumps(value, ensure_ascii=False).encode()
    return ProviderAnswer(200, {"content-type": "application/json"}, yield_once(body))


async def yield_once(body: bytes) -> AsyncIterator[bytes]:
    yield body


async def ask_provider(
    method: str,
    upstream: Upstream,
    path: str,
    headers: Mapping[str, str],
    raw: bytes | None = None,
    seconds: float | None = None,
) -> ProviderAnswer:
    """Return the provider's answer as the client gets it.

    An error about the site's own key is not passed on.
    """
    response = await send_upstream(method, upstream, path, headers, raw, seconds)
    kind = response.content_type
    is_readable = kind in ("application/json", "text/event-stream")
    if response.status < 300 and is_readable:
        headers = select_headers(response)
        return ProviderAnswer(response.status, headers, _read_chunks(response))
    try:
        async with asyncio.timeout(settings.MODEL_IDLE_TIMEOUT):
            body = await response.content.read(MAX_ERROR_BYTES)
    except (TimeoutError, aiohttp.ClientError):
        body = b""
    finally:
        response.close()
    secrets = [
        text.removeprefix("Bearer ").encode()
        for name, text in upstream[1].items()
        # A short text of the operator's own headers can be any word.
        if name in KEY_HEADERS or len(text) >= LEAST_SECRET
    ]
    is_own = response.status in (401, 403) or any(each in body for each in secrets)
    if response.status < 400 or not is_readable or is_own:
        raise _explain_answer(response, is_own=is_own)
    return ProviderAnswer(
        response.status, select_headers(response), yield_once(body), body
    )


def _explain_answer(response: aiohttp.ClientResponse, *, is_own: bool) -> ApiError:
    if is_own:
        detail = "The model's provider refused this site's key. Ask its administrator."
        return ApiError(502, "upstream_key", detail)
    retry_after = response.headers.get("retry-after", "")
    detail = "The answer of the model's provider does not fit this API."
    status = response.status if response.status >= 400 else 502
    wait = float(retry_after) if retry_after.isdecimal() else None
    return ApiError(status, "bad_response", detail, retry_after=wait)


async def _read_chunks(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    end = loop.time() + settings.MODEL_TOTAL_TIMEOUT
    try:
        while True:
            patience = min(end, loop.time() + settings.MODEL_IDLE_TIMEOUT)
            async with asyncio.timeout_at(patience):
                chunk = await response.content.readany()
            if not chunk:
                return
            yield chunk
    except TimeoutError:
        raise CutError("timeout") from None
    except (aiohttp.ClientError, OSError):
        # aiohttp raises the error before it returns the last bytes.
        if rest := response.content._read_nowait(-1):
            yield rest
        raise CutError("no_finish_reason") from None
    finally:
        response.close()


def _answer_as_demo(
    request: ParsedRequest, earlier: Sequence[BaseMessage]
) -> ProviderAnswer:
    messages = [*earlier, *request.demo_messages]
    stream = streaming.ReplyStream(providers.DEMO, messages, strict=False)

    async def write() -> AsyncIterator[bytes]:
        async with aclosing(stream):
            written = request.api.write_reply(request.body.value, request.model, stream)
            async with aclosing(written) as chunks:
                async for chunk in chunks:
                    yield chunk

    kind = "text/event-stream" if request.is_stream else "application/json"
    return ProviderAnswer(200, {"content-type": kind}, write())


async def list_upstream_models(api: Api) -> list[dict[str, Any]]:
    """Return the models that the provider lists, or the configured ones.

    The provider is asked once in MODELS_SECONDS for all users. Raise ApiError.
    """
    upstream = api.find_upstream("")
    if upstream is None:
        size = providers.context_window(providers.DEMO)
        return [{"id": providers.DEMO, "object": "model", "context_length": size}]
    loop, address = asyncio.get_running_loop(), f"{upstream[0]}{api.models_path}"
    asked_at, task = _listed.get(address, (0.0, None))
    is_old = loop.time() - asked_at > MODELS_SECONDS
    if task is None or task.get_loop() is not loop or is_old or _has_failed(task):
        task = loop.create_task(_fetch_models(api, upstream))
        _listed[address] = loop.time(), task
    # Other requests still wait for it if the first client hangs up.
    return await asyncio.shield(task)


def _has_failed(task: asyncio.Task[Any]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)


async def _fetch_models(api: Api, upstream: Upstream) -> list[dict[str, Any]]:
    path, headers = api.models_path, api.models_headers
    response = await send_upstream("GET", upstream, path, headers)
    try:
        async with asyncio.timeout(settings.MODEL_IDLE_TIMEOUT):
            value = await response.json(content_type=None)
        found = value["data"] if response.status < 300 else None
        models = [each for each in found if isinstance(each["id"], str)]
    except (aiohttp.ClientError, TimeoutError, ValueError, LookupError, TypeError):
        named = filter(_is_relayed, providers.list_models())
        models = [{"id": name, "object": "model"} for name in named]
    finally:
        response.close()
    return [_with_size(each) for each in models]


def list_own_models(user_id: int) -> list[dict[str, Any]]:
    """Return the models of PROVIDERS_FILE that this user may use."""
    return [
        {
            "id": name,
            "object": "model",
            "owned_by": providers.name_provider(name),
            "context_length": providers.context_window(name),
        }
        for name in model_access.list_models_for(user_id)
        if _is_relayed(name)
    ]


def _is_relayed(name: str) -> bool:
    """Return True if the model's provider is sent what a client sends."""
    provider = providers.find_provider(name)
    is_local = provider is not None and provider.is_local
    return not (is_local or providers.find_model(name).model)


def _with_size(model: dict[str, Any]) -> dict[str, Any]:
    """Return the model with its context length, where that is known.

    Clients misjudge a model without it.
    """
    size = settings.CONTEXT_WINDOW or model.get("max_model_len")
    return {"context_length": size, **model} if size else model
