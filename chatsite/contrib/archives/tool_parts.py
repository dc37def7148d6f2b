"""Messages, tool calls and their results in the exports of other chats.

They are read leniently, as plain values that both databases store.
"""

import json
import re
from typing import Any

from django.utils.translation import gettext as _

from chatsite.features.importing.files.reading import STRING, measure_depth
from chatsite.features.importing.files.remainder import (
    has_words,
    list_words,
    order_keys,
)
from chatsite.llm.streaming import clean_text

MAX_DEPTH = 20
# How a message of ChatGPT names the file of an image, earlier and now.
POINTER = re.compile(r"(?:file-service|sediment)://(file[-_][A-Za-z0-9]+)")


def make_call(call_id: str, name: object, arguments: object) -> dict[str, Any]:
    """Return a call in LangChain's form."""
    value = make_plain(arguments)
    return {
        "name": make_plain(name)[:100] if isinstance(name, str) else "",
        "args": value if isinstance(value, dict) else {"input": value},
        "id": call_id,
        "type": "tool_call",
    }


def make_plain(value: Any) -> Any:
    """Return the value without characters and numbers that no database stores."""
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
    """Return what ChatGPT wrote to a tool: a JSON object, code, or words."""
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
    """Return all words of a message or a result.

    They are its own, those of its parts, and marks where the export left something out.
    For speech the words are enough.
    """
    is_spoken = any(
        part.get("content_type") == "audio_transcription"
        for part in list_dicts(block.get("parts"))
    )
    found = []
    for key in order_keys(block):
        value = block[key]
        parts = value if isinstance(value, list) else [value]
        for part in parts:
            words = "\n".join(list_words(part))
            is_part = key in ("parts", "content") and isinstance(part, dict)
            if not words and is_part and not find_pointer(part):
                is_audio = "audio" in str(part.get("content_type"))
                if not (is_spoken and is_audio):
                    words = _("[attachment not included in the export]")
            found.append(words)
    return "\n\n".join(filter(None, found))


def find_pointer(part: object) -> str:
    """Return the file id of an image, or "" for anything else."""
    if not isinstance(part, dict):
        return ""
    pointer = None
    if part.get("content_type") == "image_asset_pointer":
        pointer = part.get("asset_pointer")
    elif part.get("message_type") == "image":
        pointer = part.get("image_url")
    found = POINTER.fullmatch(pointer) if isinstance(pointer, str) else None
    return found[1] if found else ""


def name_file(name: object) -> str:
    """Return the mark of a file that the export lacks."""
    if not has_words(name):
        return _("[attachment not included in the export]")
    shown = " ".join(clean_text(name).split())
    return _("[file: %(name)s, not in the export]") % {"name": shown}


def name_language(value: object) -> str:
    """Return the language of a piece of code, for the block that it is in."""
    is_name = isinstance(value, str) and value.isalnum() and value != "unknown"
    return value if is_name else ""


def as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def list_dicts(value: object) -> list[dict[str, Any]]:
    return [each for each in as_list(value) if isinstance(each, dict)]


def read_string(value: object) -> str:
    return clean_text(value) if isinstance(value, str) else ""
