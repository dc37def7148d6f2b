"""ReplyStream: one request to a model as an iterator over pieces of text.

It adds what providers and LangChain leave open: deadlines by the clock, counted
retries before the first token, clean text, and errors that are safe to show.
"""

import asyncio
import hashlib
import logging
import math
import random
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, closing
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeVar

from django.conf import settings
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import ToolCallChunk
from pydantic import BaseModel

from memory.engine.compose import pick_fields

from . import deltas, dialects, providers
from .deltas import Delta
from .errors import DETAILS, LLMError, translate_error
from .gathered import Calls, Extras, TextParts, describe_extras

logger = logging.getLogger(__name__)

T = TypeVar("T")

MAX_REPLY_CHARS = 200_000
# Of the arguments of a call: they stand inside of others in an export.
MAX_JSON_DEPTH = 50
FIRST_PAUSE = 0.5
MAX_PAUSE = 20.0
# A reply is complete with its finish reason; only the token counts may still come.
USAGE_TIMEOUT = 5.0
# Of what is beside the text, with its images.
MAX_EXTRA_CHARS = 8_000_000
# A deadline can come nearer, too; this is noticed so late at most.
LOOK_SECONDS = 0.25
HIGH_SURROGATE_AT_END = re.compile("[\ud800-\udbff]$")


# LangChain's names of tokens that are written to a cache.
KEPT = ("cache_creation", "ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens")


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens as the provider reported them; None for what it did not."""

    input: int | None
    cached: int | None
    output: int | None
    # Written to the provider's cache, and of these for an hour or more.
    kept: int = 0
    kept_long: int = 0


def clean_text(text: str) -> str:
    """Return a model's output as it is stored and shown.

    NUL is removed (PostgreSQL refuses it) and a surrogate without its other half
    becomes U+FFFD (it has no UTF-8 form). Everything else stays as it came.
    """
    text = text.replace("\x00", "")
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def clean_json(value: Any, depth: int = 0) -> Any:
    """Return a value of JSON as both databases can store it and an import takes it.

    Raise ValueError where it is too deep or has a number that is not finite.
    """
    if depth > MAX_JSON_DEPTH:
        raise ValueError("too deep")
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list):
        return [clean_json(each, depth + 1) for each in value]
    if isinstance(value, dict):
        return {
            clean_text(key): clean_json(each, depth + 1) for key, each in value.items()
        }
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("not finite")  # such as 1e999
    return value


class MovingDeadline:
    """Ends a wait at the time that `find_end` returns, by the clock of the event loop.

    One timer looks at it a few times a second. asyncio.timeout_at() sets and cancels
    one for every wait, which is a measurable share of what a streamed word costs.
    """

    def __init__(self, find_end: Callable[[], float]) -> None:
        self._find_end = find_end
        self._loop = asyncio.get_running_loop()
        self._is_over = False
        self._waiting: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._look()

    def close(self) -> None:
        if self._timer:
            self._timer.cancel()

    def _look(self) -> None:
        end, now = self._find_end(), self._loop.time()
        if now < end:
            # Those of all replies look at the same moments, too.
            at = min(end, (now // LOOK_SECONDS + 1) * LOOK_SECONDS)
            self._timer = self._loop.call_at(at, self._look)
            return
        self._is_over = True
        if self._waiting:
            self._waiting.cancel()

    async def limit_wait(self, work: Callable[..., Awaitable[T]], *args: Any) -> T:
        """Return the result of work(*args), or raise TimeoutError at the deadline."""
        task = self._waiting = asyncio.current_task()
        cancelling = task.cancelling()
        try:
            if self._is_over:
                raise TimeoutError
            return await work(*args)
        except asyncio.CancelledError:
            # Another one can have cancelled the task, too.
            if self._is_over and task.uncancel() <= cancelling:
                raise TimeoutError from None
            raise
        finally:
            self._waiting = None


class ReplyStream:
    """Async iterator over the pieces of one reply; raises LLMError.

    After the end, and after an error as far as they are known: usage, finish_reason
    (None: the stream just ended), reasoning, refusal, attempts, first_token_ms,
    total_ms, calls, extras, body_sha256 and body_fields of the request that it answers.
    """

    def __init__(
        self,
        name: str,
        messages: Sequence[BaseMessage],
        *,
        first: float | None = None,
        idle: float | None = None,
        total: float | None = None,
        bind: dict[str, Any] | None = None,
        dialect: dialects.Dialect | None = None,
        strict: bool = True,
    ) -> None:
        """Prepare a request, which the first piece that is asked for sends.

        The total time counts from now. `first`, `idle`: seconds of silence until the
        answer begins, and after that. Reasoning is no silence. `bind`: arguments of the
        request besides messages (tools, max_tokens). `dialect`: the one whose form the
        messages have. `strict`: an empty reply is an error.
        """
        self.name = name
        self.dialect = dialect or dialects.find_dialect(name)
        self.usage: TokenUsage | None = None
        self.finish_reason: str | None = None
        self.attempts = 0
        self.first_token_ms: int | None = None
        self.body_sha256, self.body_fields = "", dict[str, Any]()
        self._messages = list(messages)
        self._bind = bind or {}
        self._strict = strict
        self._first = settings.MODEL_FIRST_TOKEN_TIMEOUT if first is None else first
        self._idle = settings.MODEL_IDLE_TIMEOUT if idle is None else idle
        self._started = time.monotonic()
        self._deadline = self._started + (
            settings.MODEL_TOTAL_TIMEOUT if total is None else total
        )
        self._life_at = self._started
        self._ended_at: float | None = None
        self._resent = 0
        self._chars = 0
        self._carry = ""
        self._reasoning, self._refusal = (
            TextParts(MAX_REPLY_CHARS),
            TextParts(MAX_REPLY_CHARS),
        )
        self._calls = Calls(MAX_REPLY_CHARS)
        self._extras, self._comes_back = Extras(MAX_EXTRA_CHARS), False
        self._is_understood = False  # the request was accepted in this dialect
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
    def reasoning(self) -> str:
        return clean_text(str(self._reasoning))

    @property
    def refusal(self) -> str:
        return clean_text(str(self._refusal))

    @property
    def calls(self) -> list[ToolCallChunk]:
        """The calls of tools as they came: arguments are a text that may be no JSON.

        Always empty when no tools were bound.
        """
        return self._calls.to_chunks()

    @property
    def extras(self) -> dict[str, Any]:
        """The entries that the server has put beside the text, as they came."""
        found = self._extras.to_value()
        if self._comes_back:
            found = {**found, "reasoning_content": str(self._reasoning)}
        return found

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
        """Return the seconds until the next attempt; raise the error after the last."""
        if error.instead and error.instead.has_form_of(self.dialect):
            self.dialect = error.instead
            self._resent += 1
            logger.warning("Model %r: a field was refused, sent without", self.name)
            return 0.0
        pause = error.retry_after
        if pause is None:
            pause = FIRST_PAUSE * 2 ** (self.attempts - self._resent - 1)
            pause *= random.uniform(0.75, 1.25)  # noqa: S311
        is_last = self.attempts - self._resent >= settings.MODEL_MAX_ATTEMPTS
        is_late = pause > MAX_PAUSE or time.monotonic() + pause >= self._deadline
        is_hopeless = not error.retryable or error.instead is not None
        if error.code == "rate_limited" and pause > MAX_PAUSE:
            raise LLMError("rate_limited_long")
        if is_hopeless or self._has_begun or is_last or is_late:
            raise error
        logger.warning(
            "Model %r: %s at attempt %d, next in %.1f s",
            self.name,
            error.code,
            self.attempts,
            pause,
        )
        return pause

    @property
    def _has_begun(self) -> bool:
        """True once a part came that a second request might word differently."""
        return bool(self.first_token_ms is not None or self._calls or self._reasoning)

    async def _attempt(self) -> AsyncIterator[str]:
        self._check_provider()
        options = self.dialect.to_options(self._bind)
        try:
            model = providers.build(self.name)
        except LookupError as error:
            logger.error("%s", error)
            raise LLMError("bad_request") from None
        self._life_at, self._is_understood = time.monotonic(), False
        reading = deltas.read_deltas(
            model, self._messages, on_body=self._note_body, **options
        )
        with closing(MovingDeadline(self._find_end_of_patience)) as deadline:
            async with aclosing(reading) as batches:
                while batch := await self._read(batches, deadline):
                    self._note(batch)
                    if piece := self._take("".join([delta.text for delta in batch])):
                        yield piece
                    if self._chars >= MAX_REPLY_CHARS or self._calls.is_full:
                        self.finish_reason = "length"
                        return
        rest = "" if self._chars else self.refusal
        if piece := self._take(rest + self._describe_extras(), is_end=True):
            yield piece
        self._check_end()

    def _note_body(self, body: dict[str, Any], sent: bytes) -> None:
        self.body_sha256 = hashlib.sha256(sent).hexdigest()
        self.body_fields = pick_fields(body, self.name)

    def _describe_extras(self) -> str:
        """Return the parts of a reply beside its text, in lines below it.

        A summary has none.
        """
        if not self._strict or self._calls:
            return ""
        lines = describe_extras(self._extras.to_value())
        return f"\n\n{lines}" if lines and self._chars else lines

    def _check_provider(self) -> None:
        if providers.is_demo(self.name):
            return
        provider = providers.find_provider(self.name)
        if provider is None:
            raise LLMError("model_denied")
        if not providers.find_provider_host(provider):
            raise LLMError("address")

    async def _read(
        self, batches: AsyncIterator[list[Delta]], deadline: MovingDeadline
    ) -> list[Delta] | None:
        """Return the next deltas, or None at the end."""
        try:
            batch = await deadline.limit_wait(anext, batches, None)
        except Exception as exc:  # noqa: BLE001
            # Whatever a provider's library raises ends here, as an LLMError; its
            # text stays out of the log because it can hold the key.
            if self.finish_reason:
                return None
            raise self._explain(exc) from None
        if batch and not self._is_understood:
            self._is_understood = True
            if self.dialect != dialects.find_dialect(self.name):
                dialects.remember_dialect(self.name, self.dialect)
        return batch

    def _find_end_of_patience(self) -> float:
        """Return the deadline of the next chunk, by the clock of the event loop."""
        if self._ended_at is not None:
            end = self._ended_at + USAGE_TIMEOUT
        else:
            is_answering = self.first_token_ms is not None or self._calls
            end = self._life_at + (self._idle if is_answering else self._first)
        left = min(end, self._deadline) - time.monotonic()
        return asyncio.get_running_loop().time() + left

    def _explain(self, exc: Exception) -> LLMError:
        error = translate_error(exc)
        if isinstance(exc, TimeoutError):
            # A model that thinks longer than this would do so again, and be paid again.
            error.retryable = False
        tools = self._bind.get("tools", ())
        if not self._has_begun:
            fields = (self._bind.keys() | {"stream_options"}) - self.dialect.without
            error.instead = dialects.find_other(
                self.dialect, exc, self._messages, fields, tools
            )
        if error.code == "bad_request":
            code, error.about = dialects.find_culprit(exc, self._messages, tools)
            error.code, error.detail = code or error.code, DETAILS[code or error.code]
        # A wrong key is the operator's to mend, and no reply comes until then.
        level = logging.ERROR if error.code == "auth" else logging.INFO
        name = type(exc).__name__
        logger.log(level, "Model %r: %s (%s)", self.name, error.code, name)
        return error

    def _note(self, batch: list[Delta]) -> None:
        for delta in batch:
            # An empty one is no life: some servers send them for as long as one reads.
            if delta.text or delta.reasoning or delta.refusal or delta.calls:
                self._life_at = time.monotonic()
            if delta.reasoning or delta.refusal:
                self._reasoning.add_text(delta.reasoning)
                self._refusal.add_text(delta.refusal)
                self._comes_back = self._comes_back or delta.comes_back
            if delta.extras:
                self._extras.add_entries(delta.extras)
            if delta.usage:
                # Some servers repeat a growing count in each: the last one holds.
                self._note_usage(delta.usage)
            if delta.finish_reason:
                self.finish_reason = delta.finish_reason
                self._ended_at = self._ended_at or time.monotonic()
            for piece in delta.calls if "tools" in self._bind else ():
                self._calls.add(piece)

    def _note_usage(self, usage: UsageMetadata) -> None:
        """Keep the token counts.

        A provider that does not count says 0: every request has tokens.
        """
        read = usage["input_tokens"] or None
        details: Mapping[str, Any] = usage.get("input_token_details") or {}
        # LangChain has those for some minutes and for an hour apart from the others.
        kept, short, long = (details.get(name) or 0 for name in KEPT)
        self.usage = TokenUsage(
            read,
            None if read is None else details.get("cache_read") or 0,
            usage["output_tokens"] or None,
            kept + short + long,
            long,
        )

    def _take(self, text: str, *, is_end: bool = False) -> str:
        """Return the clean text that can be passed on now."""
        text = self._carry + text
        # The other half of a split character may be in the next chunk.
        cut = not is_end and bool(HIGH_SURROGATE_AT_END.search(text))
        text, self._carry = (text[:-1], text[-1]) if cut else (text, "")
        text = clean_text(text)[: MAX_REPLY_CHARS - self._chars]
        self._chars += len(text)
        if text and self.first_token_ms is None:
            self.first_token_ms = self.total_ms
        return text

    def _check_end(self) -> None:
        if self.finish_reason is None and not settings.FINISH_REASON_REQUIRED:
            self.finish_reason = "stop"
        is_silent = not self._chars and not self._calls
        if self._strict and is_silent and self.finish_reason in (None, "stop"):
            code = "only_reasoning" if self._reasoning else "bad_response"
            # A model that chose to say nothing will choose so again.
            raise LLMError(code, retryable=self.finish_reason is None)


async def fetch_reply(
    name: str,
    messages: Sequence[BaseMessage],
    *,
    total: float | None = None,
    max_tokens: int = 0,
    schema: type[BaseModel] | None = None,
    cache_key: str = "",
    dialect: dialects.Dialect | None = None,
    temperature: float | Literal["of summaries"] | None = "of summaries",
) -> AIMessage:
    """Return the whole reply at once, for summaries and titles.

    `cache_key`: of the conversation whose last request begins like this one;
    `temperature`: None is the provider's own.

    An empty, filtered or cut-off reply is returned as it is: the caller looks at the
    text and at response_metadata["finish_reason"].
    """
    total = settings.SUMMARY_TOTAL_TIMEOUT if total is None else total
    if temperature == "of summaries":
        temperature = settings.SUMMARY_TEMPERATURE
    bind = {
        **(providers.cache_options(name, cache_key) if cache_key else {}),
        **providers.schema_options(name, schema),
        **providers.sampling_options(name, temperature, max_tokens),
    }
    stream = ReplyStream(
        name, messages, total=total, bind=bind, dialect=dialect, strict=False
    )
    async with aclosing(stream):
        text = "".join([piece async for piece in stream])
    return AIMessage(
        text,
        usage_metadata=_usage_metadata(stream.usage),
        additional_kwargs={"refusal": stream.refusal} if stream.refusal else {},
        response_metadata={
            "finish_reason": stream.finish_reason,
            "attempts": stream.attempts,
            "total_ms": stream.total_ms,
        },
    )


def _usage_metadata(usage: TokenUsage | None) -> UsageMetadata | None:
    """Return LangChain's form of the usage, in which 0 also means "unknown"."""
    if usage is None:
        return None
    read, written = usage.input or 0, usage.output or 0
    return UsageMetadata(
        input_tokens=read,
        output_tokens=written,
        total_tokens=read + written,
        input_token_details={"cache_read": usage.cached or 0},
    )
