"""What the summariser reads: messages as JSON documents, in pieces of a given size.

Nothing is left out: a message larger than a piece is split into numbered parts.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from ..compose import role_of, time_of
from ..tokens import TokenCounter

Document = dict[str, Any]

MEDIA = {"image", "audio", "video", "file"}


def chunk(
    messages: Sequence[BaseMessage], count_tokens: TokenCounter, limit: int
) -> Iterator[list[Document]]:
    """The messages as documents, in lists of at most `limit` tokens."""
    some: list[Document] = []
    size = 0
    for message in messages:
        parts = list(_split(describe(message), count_tokens, limit))
        if len(parts) > 1:
            numbers = range(1, len(parts) + 1)
            labels = [{"part": f"{number}/{len(parts)}"} for number in numbers]
            parts = [part | label for part, label in zip(parts, labels, strict=True)]
        for document in parts:
            tokens = _count(document, count_tokens)
            if some and size + tokens > limit:
                yield some
                some, size = [], 0
            some.append(document)
            size += tokens
    if some:
        yield some


def group(
    documents: Sequence[Document], count_tokens: TokenCounter, limit: int
) -> list[list[Document]]:
    """The documents in lists of at most `limit` tokens, but of two at least, so that
    joining what is in them comes to an end."""
    groups: list[list[Document]] = []
    size = 0
    for document in documents:
        tokens = _count(document, count_tokens)
        if groups and (len(groups[-1]) < 2 or size + tokens <= limit):
            groups[-1].append(document)
            size += tokens
        else:
            groups.append([document])
            size = tokens
    return groups


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
    """A message as the summariser reads it; as JSON its role cannot be forged."""
    created_at = time_of(message)
    number = message.id
    return {
        "n": int(number) if number and number.isdecimal() else number,
        "role": role_of(message),
        "date": created_at.isoformat(timespec="minutes") if created_at else "",
        "text": describe_text(message),
    }


def describe_text(message: BaseMessage) -> str:
    """The text, then pictures and files by their address, then calls of tools."""
    parts = [message.text]
    # The bytes of a picture say nothing to a summariser.
    blocks = () if isinstance(message.content, str) else message.content_blocks
    for block in blocks:
        if block["type"] in MEDIA:
            address = str(block.get("url") or "")
            where = f": {address}" if address.startswith(("http:", "https:")) else ""
            parts.append(f"[{block['type']}{where}]")
    for call in message.tool_calls if isinstance(message, AIMessage) else ():
        parts.append(f"[called the tool {call['name']} with {to_json(call['args'])}]")
    return "\n".join(filter(None, parts))


def _count(document: Document, count_tokens: TokenCounter) -> int:
    return count_tokens([HumanMessage(to_json(document))])


def to_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
