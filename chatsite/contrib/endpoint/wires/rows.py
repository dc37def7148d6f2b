"""Messages of any wire as rows of the transcript."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from chatsite.llm.streaming import clean_json, clean_text

USER, ASSISTANT, TOOL = "user", "assistant", "tool"
# A longer text is whole in its body only.
MOST_CHARS = 200_000
CALL_ID_CHARS = 100
# Parts of OpenAI's two wires that are texts, by what holds the text.
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
    if len(text) > MOST_CHARS:
        text = text[: MOST_CHARS - 1] + "…"
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
        # Too deep, or not a number: kept as it was written.
        values = {"input": clean_text(json.dumps(values, ensure_ascii=False))}
    return {
        "name": clean_text(str(name or "")),
        "args": values,
        "id": clean_text(str(call_id or ""))[:CALL_ID_CHARS],
        "type": "tool_call",
    }


def read_call_arguments(written: str | None) -> object:
    """A model may write what is no JSON: then there are none."""
    try:
        return json.loads(written or "{}")
    except (ValueError, RecursionError):
        return {}


def name_medium(kind: object) -> str:
    """What stands in the transcript for an image and such."""
    return f"[{str(kind or 'part').partition('_')[0]}]"


def read_part_texts(content: object) -> str:
    """The texts of a content of OpenAI's wires, and names for what is none."""
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
