"""ReplyStream: one request to a model as an iterator over pieces of text.

It adds what providers and LangChain leave open: deadlines by the clock, counted
retries before the first token, clean text, and errors that are safe to show.
"""

import asyncio
import logging
import random
import re
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Self

from django.conf import settings
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from pydantic import BaseModel

from . import providers
from .errors import LLMError, translate

logger = logging.getLogger(__name__)

MAX_REPLY_CHARS = 200_000
FIRST_PAUSE = 0.5
MAX_PAUSE = 20.0
# A reply is complete with its finish reason; only the token counts may still come.
USAGE_TIMEOUT = 5.0
HIGH_SURROGATE_AT_END = re.compile("[\ud800-\udbff]$")


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the provider reported them."""

    input: int
    cached: int
    output: int


def clean(text: str) -> str:
    """Model output as it is stored and shown.

    NUL is removed (PostgreSQL refuses it) and a surrogate without its other half
    becomes U+FFFD (it has no UTF-8 form). Everything else stays as it came.
    """
    text = text.replace("\x00", "")
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class ReplyStream:
    """Async iterator over the pieces of one reply; raises LLMError.

    After the end, and after an error as far as they are known: usage, finish_reason
    (None: the stream just ended), attempts, first_token_ms, total_ms, tool_calls.
    """

    def __init__(
        self,
        name: str,
        messages: Sequence[BaseMessage],
        *,
        idle: float | None = None,
        total: float | None = None,
        bind: dict[str, Any] | None = None,
        strict: bool = True,
    ) -> None:
        """`bind`: arguments of the request besides messages (tools, max_tokens).

        `strict`: an empty or filtered reply is an error.
        """
        self.name = name
        self.usage: Usage | None = None
        self.finish_reason: str | None = None
        self.attempts = 0
        self.first_token_ms: int | None = None
        self._messages = list(messages)
        self._bind = bind or {}
        self._strict = strict
        self._idle = settings.MODEL_IDLE_TIMEOUT if idle is None else idle
        self._started = time.monotonic()
        self._deadline = self._started + (
            settings.MODEL_TOTAL_TIMEOUT if total is None else total
        )
        self._chars = 0
        self._carry = ""
        self._calls: AIMessageChunk | None = None
        self._pieces = self._run()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        return await anext(self._pieces)

    async def aclose(self) -> None:
        """Close the connection to the provider; safe to call at any time."""
        await self._pieces.aclose()

    @property
    def total_ms(self) -> int:
        return round((time.monotonic() - self._started) * 1000)

    @property
    def tool_calls(self) -> list[dict[str, Any]]:
        """The calls the model asks for; always empty when no tools were bound."""
        return list(self._calls.tool_calls) if self._calls else []

    async def _run(self) -> AsyncIterator[str]:
        while True:
            self.attempts += 1
            try:
                async with aclosing(self._attempt()) as pieces:
                    async for piece in pieces:
                        yield piece
                return
            except LLMError as error:
                pause = self._find_pause(error)
            await asyncio.sleep(pause)

    def _find_pause(self, error: LLMError) -> float:
        """Seconds until the next attempt; raises the error when there is none."""
        pause = error.retry_after
        if pause is None:
            pause = FIRST_PAUSE * 2 ** (self.attempts - 1)
            pause *= random.uniform(0.75, 1.25)  # noqa: S311
        is_last = self.attempts >= settings.MODEL_MAX_ATTEMPTS
        is_late = pause > MAX_PAUSE or time.monotonic() + pause >= self._deadline
        has_begun = self.first_token_ms is not None or self._calls
        if not error.retryable or has_begun or is_last or is_late:
            raise error
        logger.warning(
            "Model %r: %s at attempt %d, next in %.1f s",
            self.name,
            error.code,
            self.attempts,
            pause,
        )
        return pause

    async def _attempt(self) -> AsyncIterator[str]:
        model = providers.build(self.name)
        async with aclosing(model.astream(self._messages, **self._bind)) as chunks:
            while chunk := await self._read(chunks):
                self._note(chunk)
                if piece := self._take(str(chunk.text)):
                    yield piece
                if self._chars >= MAX_REPLY_CHARS:
                    self.finish_reason = "length"
                    return
        if piece := self._take("", is_end=True):
            yield piece
        self._check_end()

    async def _read(self, chunks: AsyncIterator[AIMessageChunk]) -> Any:
        """The next chunk, or None at the end."""
        idle = USAGE_TIMEOUT if self.finish_reason else self._idle
        seconds = min(idle, self._deadline - time.monotonic())
        try:
            async with asyncio.timeout(seconds):
                return await anext(chunks, None)
        except Exception as exc:  # noqa: BLE001
            # Whatever a provider's library raises ends here, as an LLMError; its
            # text stays out of the log because it can hold the key.
            if self.finish_reason:
                return None
            error = translate(exc)
            logger.info("Model %r: %s (%s)", self.name, error.code, type(exc).__name__)
            raise error from None

    def _note(self, chunk: AIMessageChunk) -> None:
        if usage := chunk.usage_metadata:
            # Some servers repeat a growing count in every chunk: the last one holds.
            details = usage.get("input_token_details") or {}
            self.usage = Usage(
                usage["input_tokens"],
                details.get("cache_read") or 0,
                usage["output_tokens"],
            )
        self.finish_reason = (
            chunk.response_metadata.get("finish_reason") or self.finish_reason
        )
        if "tools" in self._bind and chunk.tool_call_chunks:
            self._calls = self._calls + chunk if self._calls else chunk

    def _take(self, text: str, *, is_end: bool = False) -> str:
        """The clean text that can be passed on now."""
        text = self._carry + text
        # The other half of a split character may be in the next chunk.
        cut = not is_end and bool(HIGH_SURROGATE_AT_END.search(text))
        text, self._carry = (text[:-1], text[-1]) if cut else (text, "")
        text = clean(text)[: MAX_REPLY_CHARS - self._chars]
        self._chars += len(text)
        if text and self.first_token_ms is None:
            self.first_token_ms = self.total_ms
        return text

    def _check_end(self) -> None:
        if not self._strict:
            return
        if self.finish_reason == "content_filter":
            raise LLMError("content_filter")
        if not self._chars and not self._calls and self.finish_reason != "length":
            # A model that chose to say nothing will choose so again.
            raise LLMError("bad_response", retryable=self.finish_reason is None)


async def complete(
    name: str,
    messages: Sequence[BaseMessage],
    *,
    total: float | None = None,
    max_tokens: int | None = None,
    schema: type[BaseModel] | None = None,
) -> AIMessage:
    """The whole reply at once, for summaries and titles.

    An empty, filtered or cut-off reply is returned as it is: whoever asked looks at
    the text and at response_metadata["finish_reason"].
    """
    total = settings.SUMMARY_TOTAL_TIMEOUT if total is None else total
    bind = providers.schema_options(name, schema)
    if max_tokens:
        bind["max_tokens"] = max_tokens
    stream = ReplyStream(name, messages, total=total, bind=bind, strict=False)
    async with aclosing(stream):
        text = "".join([piece async for piece in stream])
    return AIMessage(
        text,
        usage_metadata=_usage_metadata(stream.usage),
        response_metadata={
            "finish_reason": stream.finish_reason,
            "attempts": stream.attempts,
            "total_ms": stream.total_ms,
        },
    )


def _usage_metadata(usage: Usage | None) -> UsageMetadata | None:
    if usage is None:
        return None
    return UsageMetadata(
        input_tokens=usage.input,
        output_tokens=usage.output,
        total_tokens=usage.input + usage.output,
        input_token_details={"cache_read": usage.cached},
    )
