"""Turns messages into a validated summary; knows the model only as a callable.

Every message is read whole: input too long for one request is read in chunks, each
extending the summary of the ones before. A doubtful reply raises, it is never stored.
"""

import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
)

from . import prompts
from .compose import SummaryBlock, role_of
from .exceptions import (
    EmptySummary,
    OverlongSummary,
    RefusedSummary,
    SummaryError,
    TruncatedSummary,
)
from .policy import Policy
from .tokens import TokenCounter, count_tokens

Invoke = Callable[[list[BaseMessage]], Awaitable[AIMessage]]
Document = dict[str, Any]

CHUNK_TOKENS = 8000
CUT_OFF = {"length", "max_tokens", "content_filter"}
# A refusal is a short reply that begins like one; a summary may well quote one later.
REFUSAL_MAX_CHARS = 400
REFUSAL = re.compile(
    r"(i['’]m sorry|sorry|i apologi[sz]e|unfortunately)?[,.]?\s*(but\s+)?"
    r"(as an ai\b|i\s*(['’]m|am)?\s*(can['’]?t|can ?not|unable to|not able to|won['’]t)"
    r"\s+(help|assist|summari[sz]e|comply|do|provide|process|fulfill?|continue))"
    r"|(很?抱歉|对不起)?[,，。]?\s*我(不能|无法|没法)(帮|协助|总结|提供|处理|满足|完成)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class SummaryText:
    """A valid summary, the hash of the prompts it came from, and what it took."""

    text: str
    prompt_hash: str
    requests: int


async def summarize(
    invoke: Invoke,
    messages: Sequence[BaseMessage],
    *,
    previous: str = "",
    policy: Policy,
    count_tokens: TokenCounter = count_tokens,
    chunk_tokens: int = CHUNK_TOKENS,
) -> SummaryText:
    """Summarise the messages, extending `previous`. Raises SummaryError."""
    if not messages:
        raise EmptySummary("There is nothing to summarise.")
    writer = _Writer(invoke, policy, count_tokens)
    chunks = list(_chunk(messages, count_tokens, chunk_tokens))
    for number, chunk in enumerate(chunks, start=1):
        previous = await writer.write(
            prompts.EXTEND if previous else prompts.INITIAL,
            {"previous_summary": previous, "messages": chunk},
            is_last=number == len(chunks),
        )
    return writer.result(previous)


async def merge(
    invoke: Invoke,
    blocks: Sequence[SummaryBlock],
    messages: Sequence[BaseMessage] = (),
    *,
    policy: Policy,
    count_tokens: TokenCounter = count_tokens,
    chunk_tokens: int = CHUNK_TOKENS,
) -> SummaryText:
    """One summary for adjacent ones: from their messages if those fit in one request.

    Read again from the transcript, nothing is rewritten twice. Raises SummaryError.
    """
    if messages and len(list(_chunk(messages, count_tokens, chunk_tokens))) == 1:
        return await summarize(
            invoke,
            messages,
            policy=policy,
            count_tokens=count_tokens,
            chunk_tokens=chunk_tokens,
        )
    writer = _Writer(invoke, policy, count_tokens)
    summaries = [
        {"messages": f"{block.first_seq}-{block.last_seq}", "text": block.text}
        for block in blocks
    ]
    text = await writer.write(prompts.MERGE, {"summaries": summaries}, is_last=True)
    return writer.result(text)


def validate(
    reply: AIMessage,
    *,
    input_tokens: int,
    policy: Policy,
    count_tokens: TokenCounter = count_tokens,
) -> str:
    """The text of a reply that may become memory; raises SummaryError otherwise."""
    text = str(reply.text).strip()
    if reply.response_metadata.get("finish_reason") in CUT_OFF:
        raise TruncatedSummary("The summary was cut off by the provider.")
    if reply.additional_kwargs.get("refusal") or is_refusal(text):
        raise RefusedSummary("The model declined to summarise.")
    if not text:
        raise EmptySummary("The summary is empty.")
    tokens = count_tokens([HumanMessage(text)])
    if tokens > max(policy.max_summary_tokens, input_tokens):
        raise OverlongSummary(
            f"The summary has {tokens} tokens: more than its cap of "
            f"{policy.max_summary_tokens} and than its input of {input_tokens}."
        )
    return text


def is_refusal(text: str) -> bool:
    return len(text) <= REFUSAL_MAX_CHARS and REFUSAL.match(text) is not None


class _Writer:
    """Sends the requests of one summary and keeps count of them."""

    def __init__(
        self, invoke: Invoke, policy: Policy, count_tokens: TokenCounter
    ) -> None:
        self.invoke = invoke
        self.policy = policy
        self.count_tokens = count_tokens
        self.prompts: list[str] = []

    async def write(self, prompt: str, document: Document, *, is_last: bool) -> str:
        text = await self._ask(prompt, document)
        if not is_last or len(text) >= self.policy.min_summary_chars:
            return text
        # The first summary is valid, only short: it stands if the second one is not.
        with suppress(SummaryError):
            longer = await self._ask(prompt + prompts.MORE_DETAIL, document)
            text = max(text, longer, key=len)
        return text

    async def _ask(self, prompt: str, document: Document) -> str:
        self.prompts.append(prompt)
        material = [HumanMessage(_to_json(document))]
        cap = {"max_tokens": self.policy.max_summary_tokens}
        reply = await self.invoke(
            [SystemMessage(prompt), HumanMessage(_to_json(document | cap))]
        )
        return validate(
            reply,
            input_tokens=self.count_tokens(material),
            policy=self.policy,
            count_tokens=self.count_tokens,
        )

    def result(self, text: str) -> SummaryText:
        used = "\n\n".join(dict.fromkeys(self.prompts))
        return SummaryText(
            text, hashlib.sha256(used.encode()).hexdigest(), len(self.prompts)
        )


def _chunk(
    messages: Sequence[BaseMessage], count_tokens: TokenCounter, limit: int
) -> Iterator[list[Document]]:
    """The messages as documents, in lists of at most `limit` tokens."""
    chunk: list[Document] = []
    size = 0
    for document in _describe_all(messages, count_tokens, limit):
        tokens = _count(document, count_tokens)
        if chunk and size + tokens > limit:
            yield chunk
            chunk, size = [], 0
        chunk.append(document)
        size += tokens
    if chunk:
        yield chunk


def _describe_all(
    messages: Sequence[BaseMessage], count_tokens: TokenCounter, limit: int
) -> Iterator[Document]:
    for message in messages:
        document = describe(message)
        if _count(document, count_tokens) <= limit:
            yield document
            continue
        parts = list(_split(document, count_tokens, limit))
        for number, part in enumerate(parts, start=1):
            yield part | {"part": f"{number}/{len(parts)}"}


def _split(
    document: Document, count_tokens: TokenCounter, limit: int
) -> Iterator[Document]:
    """Halve the text, between words where there are any, until every part fits."""
    text = document["text"]
    if len(text) < 2 or _count(document, count_tokens) <= limit:
        yield document
        return
    middle = text.rfind(" ", len(text) // 4, len(text) // 2) + 1 or len(text) // 2
    for half in (text[:middle], text[middle:]):
        yield from _split(document | {"text": half}, count_tokens, limit)


def describe(message: BaseMessage) -> Document:
    """A message as the summariser reads it; as JSON its role can not be forged."""
    created_at = message.additional_kwargs.get("created_at")
    return {
        "n": _number(message.id),
        "role": role_of(message),
        "date": created_at.isoformat(timespec="minutes")
        if isinstance(created_at, datetime)
        else "",
        "text": "\n".join(filter(None, [message.text, *_describe_calls(message)])),
    }


def _describe_calls(message: BaseMessage) -> Iterator[str]:
    if isinstance(message, AIMessage):
        for call in message.tool_calls:
            yield f"[called the tool {call['name']} with {_to_json(call['args'])}]"


def _number(id_: str | None) -> int | str | None:
    return int(id_) if id_ and id_.isdecimal() else id_


def _count(document: Document, count_tokens: TokenCounter) -> int:
    return count_tokens([HumanMessage(_to_json(document))])


def _to_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
