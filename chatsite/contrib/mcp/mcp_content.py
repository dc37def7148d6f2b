"""Answers of MCP servers as LangChain blocks: text and files.

The model gets the text, users get the files. Reads the plain JSON of the protocol and
needs no SDK: a kind of content that is newer than the SDK must not remove the text
beside it.
"""

import base64
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote, urlsplit

from langchain_core.tools import ToolException

from chatsite.features.tools import results

Block = dict[str, Any]

# Blocks of one result that are read; and of that many, the last says so.
MAX_BLOCKS = 1_000
NOT_READ = "[{n:,} more parts of this result were not read]"


def read_result(answer: Block) -> list[Block]:
    """Return the content of a result of tools/call.

    Raises ToolException for a result that reports a failed call.
    """
    parts = answer.get("content")
    parts = parts if isinstance(parts, list) else []
    blocks = [block for part in parts[:MAX_BLOCKS] for block in _read(part)]
    if len(parts) > MAX_BLOCKS:
        blocks.append(_text(NOT_READ.format(n=len(parts) - MAX_BLOCKS)))
    if text := _read_structured(answer.get("structuredContent"), blocks):
        blocks.append(_text(text))
    if answer.get("isError"):
        raise ToolException(results.to_text(blocks) or "The tool failed.")
    return blocks


def _read(part: Any) -> Iterator[Block]:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind == "text" and isinstance(part.get("text"), str):
        yield _text(part["text"])
    elif kind == "resource" and isinstance(part.get("resource"), dict):
        yield _read_resource(part["resource"])
    elif kind == "resource_link":
        yield _file(part, url=_string(part, "uri"), size=part.get("size"))
    elif isinstance(kind, str) and isinstance(part.get("data"), str):
        yield _file(part, base64=part["data"], fallback=kind)
    else:
        # Of a newer protocol, or broken: kept for people as it came.
        data = base64.b64encode(json.dumps(part).encode()).decode()
        name = kind if isinstance(kind, str) else "unknown"
        yield _file({"name": f"{name}.json"}, base64=data, mime="application/json")


def _read_resource(resource: Block) -> Block:
    values = {"name": _name_of(_string(resource, "uri")), **resource}
    if isinstance(text := resource.get("text"), str):
        return {**_file(values, mime="text/plain"), "type": "text", "text": text}
    return _file(values, base64=_string(resource, "blob"))


def _read_structured(value: Any, blocks: list[Block]) -> str:
    """Return the JSON where no text says the same, as with most servers."""
    if value is None:
        return ""
    # Servers wrap what is no object.
    is_wrapped = isinstance(value, dict) and list(value) == ["result"]
    said = [value, value["result"]] if is_wrapped else [value]
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    if any(text in said or _parse(text) in said for text in texts):
        return ""
    # A list comes as one text for each of its entries.
    if isinstance(said[-1], list) and len(said[-1]) == len(texts):
        return ""
    return json.dumps(value, ensure_ascii=False)


def _parse(text: str) -> Any:
    """Return the parsed JSON; for other text, an object that equals no value."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return ...


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _file(values: Block, *, fallback: str = "", mime: str = "", **more: Any) -> Block:
    """Return a block of the kind that a tool node accepts for any file."""
    mime = _string(values, "mimeType") or mime
    names = {
        "name": _string(values, "name") or _name_of(_string(values, "uri")),
        "title": _string(values, "title"),
        "mime_type": mime or (f"{fallback}/*" if fallback else ""),
    }
    return {"type": "file", **names, **more}


def _string(values: Block, name: str) -> str:
    value = values.get(name)
    return value if isinstance(value, str) else ""


def _name_of(uri: str) -> str:
    """Return the last part of an address."""
    try:
        path = urlsplit(uri).path
    except ValueError:
        path = uri
    return unquote(path.rstrip("/").rpartition("/")[2])
