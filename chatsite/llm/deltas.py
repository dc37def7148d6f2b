"""Deltas: what the chunks of a model's stream say, read as many at a time as have come.

A chunk of LangChain's is built, validated and shown to its tracers one by one, which
costs more than everything else that a word goes through.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self, runtime_checkable

from langchain_core.callbacks import AsyncCallbackManager
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import ToolCallChunk

# Receives the body of a request and its bytes, as they leave.
NoteBody = Callable[[dict[str, Any], bytes], None]


@dataclass(slots=True)  # frozen, each would take three times as long to make
class Delta:
    """The contents of one or more chunks of a stream.

    `calls`: pieces of calls of tools; `extras`: the entries that a server puts beside
    the text; `comes_back`: the server wants to have the reasoning back.
    """

    text: str = ""
    reasoning: str = ""
    refusal: str = ""
    finish_reason: str | None = None
    usage: UsageMetadata | None = None
    calls: Sequence[ToolCallChunk] = ()
    extras: Mapping[str, Any] | None = None
    comes_back: bool = False

    @classmethod
    def from_chunk(cls, chunk: AIMessageChunk) -> Self:
        found = chunk.additional_kwargs
        return cls(
            str(chunk.text),
            found.get("reasoning") or "",
            found.get("refusal") or "",
            chunk.response_metadata.get("finish_reason"),
            chunk.usage_metadata,
            tuple(found.get("calls") or chunk.tool_call_chunks),
            found.get("extras"),
            found.get("comes_back", False),
        )


@runtime_checkable
class ReadsDeltas(Protocol):
    """A model that can do without LangChain's chunks."""

    def deltas(
        self, messages: list[BaseMessage], **options: Any
    ) -> AsyncIterator[list[Delta]]: ...


def read_deltas(
    model: BaseChatModel, messages: Sequence[BaseMessage], **options: Any
) -> AsyncIterator[list[Delta]]:
    """Yield the deltas of a reply: each time, all that have come since the last."""
    if isinstance(model, ReadsDeltas) and not is_traced(model):
        return model.deltas(list(messages), **options)
    return _gather_chunks(model.astream(list(messages), **options))


def is_traced(model: BaseChatModel) -> bool:
    """Return True if LangSmith, a debugger or a callback wants to see the chunks."""
    manager = AsyncCallbackManager.configure(None, model.callbacks, model.verbose)
    return bool(manager.handlers)


async def _gather_chunks(
    chunks: AsyncIterator[AIMessageChunk],
) -> AsyncIterator[list[Delta]]:
    """Read the chunks ahead, and yield the deltas that have come since the last time.

    The stream of a model would stand still while its reader is busy.
    """
    found: list[Delta] = []
    news = asyncio.Event()

    async def read_all() -> None:
        try:
            async for chunk in chunks:
                found.append(Delta.from_chunk(chunk))
                news.set()
        finally:
            news.set()

    reader = asyncio.create_task(read_all())
    try:
        while True:
            await news.wait()
            news.clear()
            if found:
                batch, found[:] = found[:], []
                yield batch
            if reader.done() and not found:
                reader.result()  # raises what has ended it
                return
    finally:
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)
        await chunks.aclose()
