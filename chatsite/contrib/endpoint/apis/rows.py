"""Messages of any API as rows of the transcript."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from chatsite.llm.streaming import clean_json, clean_text

USER, ASSISTANT, TOOL = "user", "assistant", "tool"
# Of a longer text, only the body has all.
MAX_CHARS = 200_000
CALL_ID_CHARS = 100
# Text parts of OpenAI's two APIs, with the field that holds the text.
TEXTS = {"text": "text", "input_text": "text", "output_text": "text"}
TEXTS |= {"refusal": "refusal"}


class TranscriptRow(NamedTuple):
    role: str
    text: str = ""
    # In LangChain's form.
    tool_calls: list[dict[str, Any]] | None = None
    tool_call_id: str = ""


def make_row(role: str, text: str, **more: Any) -> TranscriptRow:
    text = clean_text(text)
    if len(text) > MAX_CHARS:
        text = text[: MAX_CHARS - 1] + "…"
    return TranscriptRow(role, text, **more)


def to_langchain(row: TranscriptRow) -> BaseMessage:
    if row.role == TOOL:
        return ToolMessage(row.text, tool_call_id=row.tool_call_id)
    if row.role == ASSISTANT:
        return AIMessage(row.text, tool_calls=row.tool_calls or [])
    return HumanMessage(row.text)


def make_call_value(name: object, arguments: object, call_id: object) -> dict[str, Any]:
    values = dict(arguments) if isinstance(arguments, Mapping) else {}
    try:
        values = clean_json(values)
    except ValueError:
        # Nested too deeply, or with a number that JSON lacks: stored as it was written.
        values = {"input": clean_text(json.dumps(values, ensure_ascii=False))}
    return {
        "name": clean_text(str(name or "")),
        "args": values,
        "id": clean_text(str(call_id or ""))[:CALL_ID_CHARS],
        "type": "tool_call",
    }


def read_call_arguments(written: str | None) -> object:
    """Return the arguments of a call; {} where the model wrote no JSON."""
    try:
        return json.loads(written or "{}")
    except (ValueError, RecursionError):
        return {}


def make_call_values(chunks: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return calls with arguments as JSON, as the transcript stores them."""
    return [
        make_call_value(each["name"], read_call_arguments(each["args"]), each["id"])
        for each in chunks
    ]


def name_medium(kind: object) -> str:
    """Return the text that represents an image and the like."""
    return f"[{str(kind or 'part').partition('_')[0]}]"


def read_part_texts(content: object) -> str:
    """Return the texts of an OpenAI content, and names for other parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(filter(None, map(_read_part_text, parts)))


def _read_part_text(part: object) -> str:
    if not isinstance(part, dict):
        return part if isinstance(part, str) else ""
    kind = str(part.get("type") or "")
    if kind in TEXTS:
        text = part.get(TEXTS[kind])
        return text if isinstance(text, str) else ""
    return name_medium(kind.removeprefix("input_"))
