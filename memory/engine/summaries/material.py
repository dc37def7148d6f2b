"""What the summariser reads: messages as JSON documents, in pieces of a given size.

Nothing is left out: a message larger than a piece is split into numbered parts.
"""

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from ..compose import role_of
from ..tokens import TokenCounter

Document = dict[str, Any]

MEDIA = {"image", "audio", "video", "file"}


def chunk(
    messages: Sequence[BaseMessage], count_tokens: TokenCounter, limit: int
) -> Iterator[list[Document]]:
    """The messages as documents, in lists of at most `limit` tokens."""
    part: list[Document] = []
    size = 0
    for document in _describe_all(messages, count_tokens, limit):
        tokens = _count(document, count_tokens)
        if part and size + tokens > limit:
            yield part
            part, size = [], 0
        part.append(document)
        size += tokens
    if part:
        yield part


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
        "text": describe_text(message),
    }


def describe_text(message: BaseMessage) -> str:
    parts = [message.text, *_describe_media(message), *_describe_calls(message)]
    return "\n".join(filter(None, parts))


def _describe_media(message: BaseMessage) -> Iterator[str]:
    """Pictures and files by their address. Their bytes say nothing to a summariser."""
    if isinstance(message.content, str):
        return
    for block in message.content_blocks:
        if block["type"] in MEDIA:
            address = str(block.get("url") or "")
            where = f": {address}" if address.startswith(("http:", "https:")) else ""
            yield f"[{block['type']}{where}]"


def _describe_calls(message: BaseMessage) -> Iterator[str]:
    if isinstance(message, AIMessage):
        for call in message.tool_calls:
            yield f"[called the tool {call['name']} with {to_json(call['args'])}]"


def _number(id_: str | None) -> int | str | None:
    return int(id_) if id_ and id_.isdecimal() else id_


def _count(document: Document, count_tokens: TokenCounter) -> int:
    return count_tokens([HumanMessage(to_json(document))])


def to_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
