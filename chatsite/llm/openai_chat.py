"""The client of OpenAI-compatible servers: LangChain's, made to read what such servers
really send. Importing this takes a second, so a site with the demo model does without.
"""

import json
import math
from collections.abc import AsyncIterator
from typing import Any

import openai
from langchain_core.messages import BaseMessageChunk
from langchain_core.outputs import ChatGenerationChunk
from langchain_openai import ChatOpenAI

BOM = b"\xef\xbb\xbf"
MAX_JSON_BYTES = 8_000_000
# No request is larger; a count beyond it is a mistake of the server.
MAX_TOKENS = 10_000_000
# Servers' names for what a model thinks before it answers.
REASONING = ("reasoning_content", "reasoning", "thinking")


class OpenAIChat(ChatOpenAI):
    """Keeps what LangChain leaves out of a chunk (reasoning, a refusal), and tolerates
    fields of a wrong type.

    Both methods are those that LangChain's own packages for other providers override.
    """

    def _get_request_payload(self, *args: Any, **options: Any) -> dict[str, Any]:
        payload = super()._get_request_payload(*args, **options)
        # Under its own name it makes LangChain use a stream that adds up and validates
        # the reply a second time, and that fails where a chunk is unusual.
        if wanted := payload.pop("response_format", None):
            payload["extra_body"] = {"response_format": wanted}
        return payload

    def _convert_chunk_to_generation_chunk(
        self,
        chunk: dict[str, Any],
        default_chunk_class: type[BaseMessageChunk],
        base_generation_info: dict[str, Any] | None,
    ) -> ChatGenerationChunk | None:
        if chunk.get("usage") is not None:
            chunk["usage"] = read_usage(chunk["usage"])
        choices = chunk.get("choices") or []
        if not isinstance(choices, list) or not all(map(_is_object, choices)):
            raise ValueError("choices is not a list of objects")
        chunk["choices"], found = [], {}
        if choices:
            choice, found = _read_choice(choices[0])
            chunk["choices"] = [choice]
        made = super()._convert_chunk_to_generation_chunk(
            chunk, default_chunk_class, base_generation_info
        )
        if made:
            made.message.additional_kwargs.update(found)
        return made


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


def _read_choice(choice: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """A choice as LangChain can take it, and what it would leave out."""
    # A server that does not stream has a message in place of the pieces.
    delta = choice.get("delta") or choice.get("message")
    delta = delta if _is_object(delta) else {}
    content, thought = _read_content(delta.get("content"))
    found = {
        "reasoning": thought or _first_text(delta, REASONING),
        "refusal": _first_text(delta, ("refusal",)),
    }
    plain = {"role": "assistant", "content": content}
    if delta.get("tool_calls"):
        plain["tool_calls"] = delta["tool_calls"]
    reason = choice.get("finish_reason")
    read = {"delta": plain, "finish_reason": reason if _is_text(reason) else None}
    return read, {name: text for name, text in found.items() if text}


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _first_text(delta: dict[str, Any], names: tuple[str, ...]) -> str:
    texts = (delta.get(name) for name in names)
    return next((text for text in texts if text and _is_text(text)), "")


def _read_content(content: object) -> tuple[str, str]:
    """Answer and reasoning of a content that may be a list of parts (Mistral)."""
    if not isinstance(content, list):
        return (content if _is_text(content) else ""), ""
    texts = {"text": "", "thinking": ""}
    for part in filter(_is_object, content):
        kind, value = part.get("type"), part.get(str(part.get("type")))
        if isinstance(value, list):
            value, _ = _read_content(value)
        if kind in texts and _is_text(value):
            texts[kind] += value
    return texts["text"], texts["thinking"]


def read_usage(usage: object) -> dict[str, Any] | None:
    """A provider's token counts; 0 for impossible ones."""
    if not isinstance(usage, dict):
        return None
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if _is_object(details) else None
    prompt, output = (
        _read_count(usage.get(name)) for name in ("prompt_tokens", "completion_tokens")
    )
    return {
        "prompt_tokens": prompt,
        "completion_tokens": output,
        "total_tokens": prompt + output,
        "prompt_tokens_details": {"cached_tokens": min(_read_count(cached), prompt)},
    }


def _read_count(value: object) -> int:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or not 0 < value <= MAX_TOKENS:
        return 0
    return int(value)


async def tidy_response(response: Any) -> None:
    """A hook of the HTTP client: lets the body of a success be read as events."""
    if response.status_code < 400:
        read = response.aiter_bytes
        response.aiter_bytes = lambda *args, **options: as_events(
            read(*args, **options)
        )


async def as_events(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """A body as the event stream that was asked for.

    A byte order mark would cost the first event; a reply as one JSON document, from a
    server that can't stream, becomes one event.
    """
    head = b""
    async for chunk in chunks:
        head += chunk
        if len(head.lstrip()) > len(BOM):
            break
    head = head.lstrip().removeprefix(BOM)
    if head.lstrip().startswith(b"{"):
        yield await _as_event(head, chunks)
        return
    yield head
    async for chunk in chunks:
        yield chunk


async def _as_event(head: bytes, chunks: AsyncIterator[bytes]) -> bytes:
    body = head
    async for chunk in chunks:
        body += chunk
        if len(body) > MAX_JSON_BYTES:
            raise ValueError("the reply is too long")
    document = json.dumps(json.loads(body))
    return f"data: {document}\n\ndata: [DONE]\n\n".encode()


class Completions:
    """What LangChain asks of the client, with chunks as plain objects. As models of
    pydantic each would be built and taken apart again, with a warning for every field
    that has another type than OpenAI's own.
    """

    def __init__(self, client: openai.AsyncOpenAI) -> None:
        self._client = client

    async def create(
        self, *, extra_body: dict[str, Any] | None = None, **body: Any
    ) -> openai.AsyncStream[object]:
        return await self._client.post(
            "/chat/completions",
            body={**body, **(extra_body or {})},
            cast_to=object,
            stream=True,
            stream_cls=openai.AsyncStream[object],
        )


def make(name: str, *, key: str, base_url: str, connect_timeout: float) -> OpenAIChat:
    """A model whose only deadline is for the connection: ReplyStream has the others."""
    timeout = openai.Timeout(None, connect=connect_timeout)
    model = OpenAIChat(
        model=name,
        api_key=key,
        base_url=base_url or None,
        # LangChain shares its own client between models, and so between loops.
        http_async_client=openai.DefaultAsyncHttpxClient(
            timeout=timeout, event_hooks={"response": [tidy_response]}
        ),
        timeout=timeout,
        stream_chunk_timeout=None,
        # ReplyStream counts its own.
        max_retries=0,
        # LangChain switches it off when there is a base URL.
        stream_usage=True,
        use_responses_api=False,
    )
    model.async_client = Completions(model.root_async_client)
    return model
