"""The material of a summary: messages as JSON documents, in pieces of a given size.

Nothing is left out: a message larger than a piece is split into numbered parts.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from html import unescape
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from ..compose import role_of, time_of
from ..tokens import TokenCounter
from .prompts import MARKER

Document = dict[str, Any]

# A summary ends where the next one begins, so that no text is read twice.
SUMMARY = re.compile(r"<summary [^<>]*+>((?:[^<]++|<(?!/?summary\b))*+)</summary>")
MEDIA = {"image", "audio", "video", "file"}


def chunk_messages(
    messages: Sequence[BaseMessage], count_tokens: TokenCounter, limit: int
) -> Iterator[list[Document]]:
    """Yield the messages as documents, in lists of at most `limit` tokens."""
    some: list[Document] = []
    size = 0
    for message in messages:
        parts = list(_split_document(describe_message(message), count_tokens, limit))
        if len(parts) > 1:
            numbers = range(1, len(parts) + 1)
            labels = [{"part": f"{number}/{len(parts)}"} for number in numbers]
            parts = [part | label for part, label in zip(parts, labels, strict=True)]
        for document in parts:
            tokens = _count_document(document, count_tokens)
            if some and size + tokens > limit:
                yield some
                some, size = [], 0
            some.append(document)
            size += tokens
    if some:
        yield some


def group_documents(
    documents: Sequence[Document], count_tokens: TokenCounter, limit: int
) -> list[list[Document]]:
    """Return the documents in lists of at most `limit` tokens, but at least two each.

    So the joining of their contents comes to an end.
    """
    groups: list[list[Document]] = []
    size = 0
    for document in documents:
        tokens = _count_document(document, count_tokens)
        if groups and (len(groups[-1]) < 2 or size + tokens <= limit):
            groups[-1].append(document)
            size += tokens
        else:
            groups.append([document])
            size = tokens
    return groups


def _split_document(
    document: Document, count_tokens: TokenCounter, limit: int
) -> Iterator[Document]:
    """Halve the text, between words where there are any, until every part fits."""
    text = document["text"]
    if len(text) < 2 or _count_document(document, count_tokens) <= limit:
        yield document
        return
    middle = text.rfind(" ", len(text) // 4, len(text) // 2) + 1 or len(text) // 2
    for half in (text[:middle], text[middle:]):
        yield from _split_document(document | {"text": half}, count_tokens, limit)


def describe_message(message: BaseMessage) -> Document:
    """Return a message as the summariser reads it.

    In JSON its role cannot be forged.
    """
    created_at = time_of(message)
    number = message.id
    return {
        "n": int(number) if number and number.isdecimal() else number,
        "role": role_of(message),
        "date": created_at.isoformat(timespec="minutes") if created_at else "",
        "text": describe_text(message),
    }


def describe_text(message: BaseMessage) -> str:
    """Return the text, then pictures and files by their address, then tool calls."""
    parts = [message.text]
    # A summariser cannot read the bytes of a picture.
    blocks = () if isinstance(message.content, str) else message.content_blocks
    for block in blocks:
        if block["type"] in MEDIA:
            address = str(block.get("url") or "")
            where = f": {address}" if address.startswith(("http:", "https:")) else ""
            parts.append(f"[{block['type']}{where}]")
    for call in message.tool_calls if isinstance(message, AIMessage) else ():
        parts.append(f"[called the tool {call['name']} with {dump_json(call['args'])}]")
    return "\n".join(filter(None, parts))


def _count_document(document: Document, count_tokens: TokenCounter) -> int:
    return count_tokens([HumanMessage(dump_json(document))])


def dump_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def holds_whole(prefix: Sequence[BaseMessage], messages: Sequence[BaseMessage]) -> bool:
    """Return whether these messages, unchanged, end the beginning of a request.

    The model must also have had the last word: an added message is then not joined with
    another one.
    """
    if not messages or len(prefix) < len(messages):
        return False
    pairs = zip(prefix[-len(messages) :], messages, strict=True)
    last = messages[-1]
    is_answered = isinstance(last, AIMessage) and not last.tool_calls
    return is_answered and all(a is b or a == b for a, b in pairs)


def describe_in_place(
    prefix: Sequence[BaseMessage], messages: Sequence[BaseMessage], *, extends: bool
) -> Document:
    """Describe the beginning of a request for the instruction behind it.

    The instruction asks for a summary of `messages`. The code depends on every word
    above it.
    """
    days: dict[str, str] = {}
    for place, message in enumerate(messages, start=1):
        created_at = time_of(message)
        day = created_at.date().isoformat() if created_at else ""
        if day and day not in list(days.values())[-1:]:
            days[str(place)] = day
    code = make_code(prefix)
    return {"code": code, "messages": len(messages), "days": days, "extends": extends}


def make_code(messages: Sequence[BaseMessage]) -> str:
    """Return 16 hex digits of a hash over all words.

    Equal if a provider joins neighbours of one role.
    """
    text = "\n\n".join(message.text for message in messages)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def read_request(request: Sequence[BaseMessage]) -> Document | None:
    """Return the material of a summariser's request as the JSON document.

    It is the same for both forms of request. None: it is no such request.
    """
    *above, last = request
    if above and above[0].text.startswith(MARKER) and above[0].type == "system":
        return json.loads(last.text)
    if not last.text.startswith(MARKER) or last.type != "human":
        return None
    try:
        given = json.loads(last.text.rpartition("\n")[2])
    except ValueError:
        return None
    if not isinstance(given, dict) or given.get("code") != make_code(above):
        return None
    read = above[-given["messages"] :]
    summaries = [m for each in above[: -len(read)] for m in SUMMARY.findall(each.text)]
    return {
        "previous_summary": unescape(summaries[-1]) if given["extends"] else "",
        "messages": list(map(describe_message, read)),
        "max_tokens": given["max_tokens"],
    }
