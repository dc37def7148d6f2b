"""The client of OpenAI-compatible servers: LangChain's, fitted to their real replies.

Importing this takes a second, so a site with the demo model does without.
"""

import asyncio
import json
import math
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, suppress
from typing import Any, ClassVar, TypeVar

import httpx2
import openai
import orjson
from langchain_core.messages import BaseMessage, BaseMessageChunk
from langchain_core.messages.ai import InputTokenDetails, UsageMetadata
from langchain_core.messages.tool import ToolCallChunk
from langchain_core.outputs import ChatGenerationChunk
from langchain_openai import ChatOpenAI

from memory.engine.compose import dump_body, order_wire
from memory.engine.tools.call_forms import add_extras

from . import transport
from .deltas import Delta, NoteBody
from .event_stream import DONE, EventReader, as_events, in_turn
from .gathered import read_calls, to_openai

T = TypeVar("T")

# Of a whole reply: several times what the longest takes with each token on its own.
MAX_BODY_BYTES = 100_000_000
# The most objects of one batch.
BATCH_OBJECTS = 200
# A connection is used again when its reply was read to the end.
END_SECONDS = 0.1
# No request is larger; a count beyond it is a mistake of the server.
MAX_TOKENS = 10_000_000
# Servers' names for what a model thinks before it answers.
REASONING = ("reasoning_content", "reasoning", "thinking")
# The name under which some want to have it back, beside the calls that it led to.
COMES_BACK = "reasoning_content"
# What servers put beside the words of a reply, and beside the whole of it at its end.
BESIDE = ("reasoning_details", "extra_content", "images", "annotations")
AT_END = ("citations", "search_results")


class ObjectStream(openai.AsyncStream[object]):
    """A stream of plain objects.

    As models of pydantic each would be built and taken apart again, with a warning for
    every field that has another type than OpenAI's.
    """

    async def __stream__(self) -> AsyncIterator[object]:
        async with aclosing(self.read_batches(lambda value: value)) as batches:
            async for batch in batches:
                for each in batch:
                    yield each

    async def read_batches(
        self, convert: Callable[[dict[str, Any]], T]
    ) -> AsyncIterator[list[T]]:
        """Yield all the objects that a connection gives at once, together.

        A chunk that is cut to give others a turn is no sign of a pause. Objects that
        come before an error are yielded before it is raised.
        """
        reader, batch = EventReader(), []
        try:
            async with (
                aclosing(self._bytes()) as body,
                aclosing(as_events(body)) as chunks,
            ):
                async for part, is_last in in_turn(chunks):
                    some, end = self._read(reader.feed(part), convert)
                    batch += some
                    if batch and (is_last or end or len(batch) >= BATCH_OBJECTS):
                        yield batch
                        batch = []
                    if isinstance(end, Exception):
                        raise end
                    if end:
                        await _exhaust_chunks(chunks)
                        return
        finally:
            await self.response.aclose()

    async def _bytes(self) -> AsyncIterator[bytes]:
        """Yield the body; of a connection that fails, all that had come before.

        Raise ValueError beyond MAX_BODY_BYTES.
        """
        left = MAX_BODY_BYTES
        try:
            async for chunk in self.response.aiter_bytes():
                yield chunk
                left -= len(chunk)
                if left < 0:
                    break
        except Exception:
            if rest := _read_buffered(self.response):
                yield rest
            raise
        if left < 0:
            raise ValueError("the reply is too long")

    def _read(
        self, found: Iterator[str], convert: Callable[[dict[str, Any]], T]
    ) -> tuple[list[T], Exception | bool]:
        """Return the objects, and True after the last ones, or the next one's error."""
        batch: list[T] = []
        try:
            for data in found:
                if data.startswith(DONE):
                    return batch, True
                batch.append(convert(self._decode(data)))
        except Exception as error:  # noqa: BLE001
            # Whatever it is: the caller raises it.
            return batch, error
        return batch, False

    def read_event(self, value: dict[str, Any]) -> dict[str, Any]:
        """Return an event in the form of chat completions."""
        return value

    def _decode(self, data: str) -> dict[str, Any]:
        try:
            value = orjson.loads(data)
        except ValueError:
            # Half of a surrogate pair, NaN: strict JSON has none, some servers do.
            value = json.loads(data)
        if not isinstance(value, dict):
            raise ValueError("an event is not an object")
        value = self.read_event(value)
        if error := value.get("error"):
            words = error.get("message") if isinstance(error, dict) else None
            words = words if isinstance(words, str) else ""
            raise openai.APIError(words, self.response.request, body=error)
        return value


def _read_buffered(response: Any) -> bytes:
    """Return the bytes that aiohttp still holds.

    It raises an error before it gives out what came between two frames. b"" with other
    clients, and for compressed bytes.
    """
    body = getattr(response.stream, "_stream", None)
    source = getattr(body, "_aiohttp_response", None)
    if source is None or "content-encoding" in response.headers:
        return b""
    return source.content._read_nowait(-1)


async def _exhaust_chunks(chunks: AsyncIterator[bytes]) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(END_SECONDS):
            async for _ in chunks:
                pass


class OpenAIChat(ChatOpenAI):
    """LangChain's client with what it leaves out of a chunk: reasoning, a refusal.

    It tolerates fields of a wrong type. The methods with an underscore are those that
    LangChain's own packages for other providers override.
    """

    api_path: ClassVar[str] = "/chat/completions"
    events: ClassVar[type[ObjectStream]] = ObjectStream

    async def deltas(
        self, messages: list[BaseMessage], **options: Any
    ) -> AsyncIterator[list[Delta]]:
        """Yield the contents of astream(), without its chunks."""
        stream = await self.async_client.create(**self.make_body(messages, **options))
        has_begun = False
        async with aclosing(stream.read_batches(self._read_delta)) as batches:
            async for batch in batches:
                yield batch
                has_begun = True
        if not has_begun:
            raise ValueError("no chunk came")

    def make_body(self, messages: list[BaseMessage], **options: Any) -> dict[str, Any]:
        """Return the body of a request for a reply."""
        if self._should_stream_usage(options.pop("stream_usage", None)):
            options["stream_options"] = {"include_usage": True}
        return self._get_request_payload(messages, **options, stream=True)

    def _read_delta(self, chunk: dict[str, Any]) -> Delta:
        # A word costs what is called here: most have neither counts nor calls.
        usage = read_usage(chunk["usage"]) if chunk.get("usage") else None
        counts = None if usage is None else _to_metadata(usage)
        choices = _choices_of(chunk)
        if not choices:
            return Delta(usage=counts)
        choice, found, calls = _read_choice(choices[0])
        if choice["finish_reason"]:
            note_sources(found, chunk)
        return Delta(
            choice["delta"]["content"],
            **found,
            finish_reason=choice["finish_reason"],
            usage=counts,
            calls=calls,
        )

    def _get_request_payload(self, *args: Any, **options: Any) -> dict[str, Any]:
        # LangChain gives it the name that only OpenAI understands.
        cap = {name: options.pop(name) for name in ("max_tokens",) if name in options}
        payload = super()._get_request_payload(*args, **options) | cap
        # Under its own name it makes LangChain use a stream that adds up and validates
        # the reply a second time, and that fails where a chunk is unusual.
        if wanted := payload.pop("response_format", None):
            payload["extra_body"] = {"response_format": wanted}
        asked = self._convert_input(args[0]).to_messages()
        for wire, message in zip(payload["messages"], asked, strict=True):
            add_extras(wire, message)
        payload["messages"] = [*map(order_wire, payload["messages"])]
        return payload

    def _convert_chunk_to_generation_chunk(
        self,
        chunk: dict[str, Any],
        default_chunk_class: type[BaseMessageChunk],
        base_generation_info: dict[str, Any] | None,
    ) -> ChatGenerationChunk | None:
        if chunk.get("usage") is not None:
            chunk["usage"] = read_usage(chunk["usage"])
        choices = _choices_of(chunk)
        chunk["choices"], found = [], {}
        if choices:
            choice, found, calls = _read_choice(choices[0])
            choice["delta"]["tool_calls"] = to_openai(calls)
            if calls:
                found["calls"] = calls
            note_sources(found, chunk)
            chunk["choices"] = [choice]
        made = super()._convert_chunk_to_generation_chunk(
            chunk, default_chunk_class, base_generation_info
        )
        if made:
            made.message.additional_kwargs.update(found)
        return made


def _choices_of(chunk: dict[str, Any]) -> list[dict[str, Any]]:
    choices = chunk.get("choices") or []
    if not isinstance(choices, list) or not all(
        isinstance(each, dict) for each in choices
    ):
        raise ValueError("choices is not a list of objects")
    return choices


def _read_choice(
    choice: dict[str, Any],
) -> tuple[dict[str, Any], dict[str, Any], list[ToolCallChunk]]:
    """Return a choice in LangChain's form, and what that form leaves out.

    The third value are the pieces of calls.
    """
    # A server that does not stream has a message in place of the pieces.
    is_whole = not choice.get("delta")
    delta = choice.get("message") if is_whole else choice["delta"]
    delta = delta if isinstance(delta, dict) else {}
    content, thought = _read_content(delta.get("content"))
    found: dict[str, Any] = {
        "reasoning": thought or _first_text(delta, REASONING),
        "refusal": _first_text(delta, ("refusal",)),
    }
    plain = {"role": "assistant", "content": content}
    reason = choice.get("finish_reason")
    read = {
        "delta": plain,
        "finish_reason": reason if isinstance(reason, str) else None,
    }
    asked = delta.get("tool_calls")
    calls = read_calls(asked, is_whole=is_whole) if asked else []
    found = {name: text for name, text in found.items() if text}
    if "reasoning" in found and delta.get(COMES_BACK):
        found["comes_back"] = True
    # A word alone has nothing beside it.
    if len(delta) > 1 and (extras := {n: delta[n] for n in BESIDE if delta.get(n)}):
        found["extras"] = extras
    return read, found, calls


def note_sources(found: dict[str, Any], chunk: dict[str, Any]) -> None:
    if extras := {name: chunk[name] for name in AT_END if chunk.get(name)}:
        found["extras"] = found.get("extras", {}) | extras


def _first_text(delta: dict[str, Any], names: tuple[str, ...]) -> str:
    for name in names:
        text = delta.get(name)
        if text and isinstance(text, str):
            return text
    return ""


def _read_content(content: object) -> tuple[str, str]:
    """Return answer and reasoning of a content, which can be a list of parts.

    Mistral sends such lists.
    """
    if not isinstance(content, list):
        return (content if isinstance(content, str) else ""), ""
    texts = {"text": "", "thinking": ""}
    for part in (each for each in content if isinstance(each, dict)):
        kind, value = part.get("type"), part.get(str(part.get("type")))
        if isinstance(value, list):
            value, _ = _read_content(value)
        if kind in texts and isinstance(value, str):
            texts[kind] += value
    return texts["text"], texts["thinking"]


def read_usage(usage: object) -> dict[str, Any] | None:
    """Return a provider's token counts; 0 for impossible ones, None for no object."""
    if not isinstance(usage, dict):
        return None
    details = usage.get("prompt_tokens_details")
    details = details if isinstance(details, dict) else {}
    cached, kept = details.get("cached_tokens"), details.get("cache_write_tokens")
    prompt, output = (
        _read_count(usage.get(name)) for name in ("prompt_tokens", "completion_tokens")
    )
    counts = {"cached_tokens": min(_read_count(cached), prompt)}
    if kept := min(_read_count(kept), prompt):
        counts["cache_write_tokens"] = kept
    return {
        "prompt_tokens": prompt,
        "completion_tokens": output,
        "total_tokens": prompt + output,
        "prompt_tokens_details": counts,
    }


def _to_metadata(usage: dict[str, Any]) -> UsageMetadata:
    details = usage["prompt_tokens_details"]
    counts = InputTokenDetails(cache_read=details["cached_tokens"])
    if kept := details.get("cache_write_tokens"):
        counts["cache_creation"] = kept
    return UsageMetadata(
        input_tokens=usage["prompt_tokens"],
        output_tokens=usage["completion_tokens"],
        total_tokens=usage["total_tokens"],
        input_token_details=counts,
        output_token_details={},
    )


def _read_count(value: object) -> int:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or not 0 < value <= MAX_TOKENS:
        return 0
    return int(value)


class Completions:
    """The part of openai's client that LangChain uses, with chunks as plain objects."""

    def __init__(self, client: openai.AsyncOpenAI, kind: type[OpenAIChat]) -> None:
        self._client, self._kind = client, kind

    async def create(
        self,
        *,
        on_body: NoteBody | None = None,
        extra_body: dict[str, Any] | None = None,
        **body: Any,
    ) -> ObjectStream:
        body |= extra_body or {}
        sent = dump_body(body)
        if on_body:
            on_body(body, sent)
        return await self._client.post(
            self._kind.api_path,
            content=sent,
            options={"headers": {"Content-Type": "application/json"}},
            cast_to=object,
            stream=True,
            stream_cls=self._kind.events,
        )


def make_openai_chat(
    name: str,
    *,
    key: str,
    base_url: str,
    connect_timeout: float,
    kind: type[OpenAIChat] = OpenAIChat,
    **client: Any,
) -> OpenAIChat:
    """Return a model whose only deadline is for the connection.

    ReplyStream has the others.
    """
    # aiohttp looks up the address in the time for the pool.
    timeout = openai.Timeout(None, connect=connect_timeout, pool=connect_timeout)
    # Apart from the address, which ends up in logs and in errors.
    address = httpx2.URL(base_url)
    name_and_password = (address.username, address.password)
    auth = httpx2.BasicAuth(*name_and_password) if any(name_and_password) else None
    model = kind(
        model=name,
        api_key=key,
        base_url=str(address.copy_with(userinfo=b"")) or None,
        # LangChain shares its own client between models, and so between loops.
        # aiohttp's, which keeps what comes until it is read.
        http_async_client=transport.BoundedClient(timeout=timeout, auth=auth),
        timeout=timeout,
        stream_chunk_timeout=None,
        # ReplyStream counts its own.
        max_retries=0,
        # LangChain switches it off when there is a base URL.
        stream_usage=True,
        # Its own form of them can't be rebuilt.
        use_responses_api=False,
        **client,
    )
    model.async_client = Completions(model.root_async_client, kind)
    return model
