"""Calls of tools and their results in the exports of other chats, read leniently and as
plain values that both databases take.
"""

import json
from typing import Any

from django.utils.translation import gettext as _

from chatsite.llm.streaming import clean_text

from .reading import STRING, measure_depth

MAX_DEPTH = 20
# Where the blocks of a result have words, in the order that they are read in.
TEXTS = ("title", "url", "text", "result", "summary")


def make_call(call_id: str, name: object, arguments: object) -> dict[str, Any]:
    """A call in LangChain's form."""
    value = make_plain(arguments)
    return {
        "name": make_plain(name)[:100] if isinstance(name, str) else "",
        "args": value if isinstance(value, dict) else {"input": value},
        "id": call_id,
        "type": "tool_call",
    }


def make_plain(value: Any) -> Any:
    """The value without characters and numbers that no database holds."""
    match value:
        case str():
            return clean_text(value)
        case list():
            return [make_plain(part) for part in value]
        case dict():
            return {
                clean_text(str(key)): make_plain(part) for key, part in value.items()
            }
        case bool() | None:
            return value
        case int():
            return value if abs(value) < 2**63 else str(value)[:100]
        case float():
            return value if abs(value) < 1e300 else str(value)
    return str(value)


def read_arguments(content: dict[str, Any]) -> dict[str, Any]:
    """What ChatGPT wrote to a tool: an object as JSON, code, or words."""
    text = read_words(content)
    bare = STRING.sub(b"", text.encode())
    if text.lstrip().startswith("{") and measure_depth(bare) <= MAX_DEPTH:
        try:
            value = json.loads(text, parse_constant=str)
        except ValueError:
            value = None
        if isinstance(value, dict):
            return value
    is_code = content.get("content_type") == "code"
    return {"code" if is_code else "input": text}


def read_words(block: dict[str, Any]) -> str:
    """The words of a result: its own, those of its parts, and marks where the export
    left something out."""
    found = [clean_text(block[name]) for name in TEXTS if _has_words(block.get(name))]
    parts = block.get("parts", block.get("content"))
    parts = [parts] if isinstance(parts, str) else parts
    for part in parts if isinstance(parts, list) else ():
        if isinstance(part, dict):
            words = [
                clean_text(part[name]) for name in TEXTS if _has_words(part.get(name))
            ]
            lost = _("[attachment not included in the export]")
            found.append("\n".join(words) or lost)
        elif _has_words(part):
            found.append(clean_text(part))
    return "\n\n".join(found)


def _has_words(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())
