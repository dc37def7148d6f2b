"""OpenAI's Responses API.

The history of a request is a list of items, or an earlier response.
"""

import json
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from time import time
from typing import Any
from uuid import uuid4

from memory.engine.tokens import count_text

from .api import Body, wants_stream
from .openai_chat import OpenAIApi
from .provider_report import COMPACTION, read_count
from .reply_reader import ReplyReader
from .rows import (
    ASSISTANT,
    CALL_ID_CHARS,
    TOOL,
    USER,
    TranscriptRow,
    make_call_value,
    make_row,
    name_medium,
    read_call_arguments,
    read_part_texts,
)

PATH = "/v1/responses"
COMPACT = f"{PATH}/compact"
RESULTS = ("function_call_output", "custom_tool_call_output")
CALLS = ("function_call", "custom_tool_call")
# The last item of a request for the provider's own summary.
TRIGGER = "compaction_trigger"
# Items that are no text of the transcript.
UNREAD = frozenset({"reasoning", COMPACTION, TRIGGER})
# An item given by its id alone, as the provider has it.
REFERENCE = "item_reference"
PREVIOUS = "previous_response_id"


def find_kind(item: Mapping[str, Any]) -> str:
    is_named = "id" in item and "role" not in item
    return str(item.get("type") or (REFERENCE if is_named else "message"))


def _read_item_text(item: Mapping[str, Any]) -> str:
    kind = find_kind(item)
    if kind == "message":
        return read_part_texts(item.get("content"))
    return "" if kind in CALLS or kind in UNREAD else name_medium(kind)


def read_item_arguments(item: Mapping[str, Any]) -> str:
    """Return the arguments as JSON; a custom tool is given a text."""
    if find_kind(item) == "custom_tool_call":
        return json.dumps({"input": item.get("input")})
    written = item.get("arguments")
    return written if isinstance(written, str) else ""


def list_item_calls(items: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for item in items:
        if find_kind(item) in CALLS:
            arguments = read_call_arguments(read_item_arguments(item))
            yield make_call_value(item.get("name"), arguments, item.get("call_id"))


class ResponsesReader(ReplyReader):
    """A parser of a response, whole or in events."""

    def __init__(self, kind: str, encoding: str = "") -> None:
        super().__init__(kind, encoding)
        self.response_id = ""
        self.output: list[dict[str, Any]] = []

    def read_object(self, value: dict[str, Any]) -> None:
        match value.get("type"):
            case "response.output_text.delta" | "response.refusal.delta":
                self.add_text(value.get("delta"))
            case (
                "response.reasoning_text.delta"
                | "response.reasoning_summary_text.delta"
            ):
                self.add_reasoning(value.get("delta"))
            case "response.output_item.done":
                self._read_call(value["item"], value.get("output_index"))
            case "response.completed" | "response.incomplete" | "response.failed":
                self._read_response(value["response"])
                self.is_done = True
            case "error":
                self.is_error = True
            case None:
                self._read_response(value)

    def _read_response(self, response: dict[str, Any]) -> None:
        if isinstance(response.get("id"), str):
            self.response_id = response["id"]
        output = response.get("output")
        self.output = output if isinstance(output, list) else []
        if not self.is_begun:
            for index, item in enumerate(self.output):
                self._read_item(item, index)
        self.report.summaries = [
            each
            for each in self.output
            if isinstance(each, dict) and each.get("type") == COMPACTION
        ]
        self.report.read_miss(response.get("prompt_cache_diagnostics"))
        usage = response.get("usage")
        if isinstance(usage, dict):
            details = usage.get("input_tokens_details")
            usage = {**usage, "prompt_tokens_details": details}
            self._read_hidden(usage.get("output_tokens_details"))
        self.read_usage(usage, "input_tokens", "output_tokens")
        why = response.get("incomplete_details") or {}
        self.finish_reason = why.get("reason") or response.get("status") or "completed"
        self.is_error = self.is_error or response.get("status") == "failed"

    def _read_hidden(self, details: object) -> None:
        """Count reasoning and encrypted summaries, which only the provider can read."""
        known = details if isinstance(details, dict) else {}
        packed = (str(i.get("encrypted_content") or "") for i in self.report.summaries)
        reasoning = read_count(known, "reasoning_tokens")
        self.report.hidden = reasoning + sum(map(count_text, packed))

    def _read_item(self, item: dict[str, Any], index: int) -> None:
        if find_kind(item) == "message":
            self.add_text(read_part_texts(item.get("content")))
        elif find_kind(item) == "reasoning":
            for part in (*(item.get("summary") or ()), *(item.get("content") or ())):
                self.add_reasoning(part.get("text"))
        self._read_call(item, index)

    def _read_call(self, item: dict[str, Any], index: int | None) -> None:
        if find_kind(item) in CALLS:
            args = read_item_arguments(item)
            self.add_call(item.get("name"), args, item.get("call_id"), index)

    def to_message(self) -> dict[str, Any]:
        """Return the reply as a client sends it back."""
        output = self.output
        if not output:
            output = [_make_message_item(self.text)] if self.text else []
            output += [
                {
                    "type": "function_call",
                    "call_id": each["id"],
                    "name": each["name"],
                    "arguments": each["args"],
                }
                for each in self.calls.to_chunks()
            ]
        return {"id": self.response_id, "output": output}


def make_response(
    body: Body, model: str, response_id: str, output: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return a response as this API sends it."""
    return {
        **{"id": response_id, "object": "response", "created_at": int(time())},
        **{"status": "completed", "error": None, "incomplete_details": None},
        **{"model": model, "output": output, "parallel_tool_calls": True},
        **{"instructions": body.get("instructions"), "metadata": {}, "tools": []},
        **{"tool_choice": "auto", "temperature": 1.0, "top_p": 1.0},
        "previous_response_id": body.get("previous_response_id"),
        "usage": None,
    }


def _make_message_item(text: str, item_id: str = "", state: str = "completed") -> Any:
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {
        **{"id": item_id, "type": "message", "role": "assistant", "status": state},
        "content": [part] if text else [],
    }


def make_kept_response(model: str, response_id: str, text: str) -> dict[str, Any]:
    """Return a response that was sent before."""
    item_id = response_id.replace("resp_", "msg_")
    return make_response({}, model, response_id, [_make_message_item(text, item_id)])


def make_compacted(summary: str) -> dict[str, Any]:
    """Return a compacted history as readable text."""
    item = _make_message_item(summary, f"msg_{uuid4().hex}")
    return {
        **{"id": f"resp_{uuid4().hex}", "object": "response.compaction"},
        **{"created_at": int(time()), "output": [item], "usage": None},
    }


class OpenAIResponses(OpenAIApi):
    name = "responses"
    paths = {PATH: "POST"}
    upstream_path = "/responses"
    reader = ResponsesReader
    list_name = "input"
    silent_types = ("reasoning",)
    id_path = f"{PATH}/"
    previous_field = PREVIOUS
    not_found_code = "previous_response_not_found"

    def list_setup(self, body: Body) -> list[str]:
        given = body.get("instructions")
        return [given] if isinstance(given, str) else []

    def list_sent(self, body: Body) -> list[dict[str, Any]]:
        """Return the input items; a plain text is one of the user."""
        if isinstance(text := body.get("input"), str):
            return [{"role": "user", "content": text}]
        return super().list_sent(body)

    def read_previous(self, body: Body) -> Any:
        return body.get(PREVIOUS) or ""

    def make_rows(self, sent: Sequence[Mapping[str, Any]]) -> list[TranscriptRow]:
        """Return the row of the items of a message.

        A reply is one message, however many items it has.
        """
        first = sent[0]
        kind = find_kind(first)
        if kind in RESULTS:
            call_id = str(first.get("call_id") or "")[:CALL_ID_CHARS]
            text = read_part_texts(first.get("output"))
            return [make_row(TOOL, text, tool_call_id=call_id)]
        if kind == "message" and first.get("role") != "assistant":
            return [make_row(USER, read_part_texts(first.get("content")))]
        text = "\n".join(filter(None, map(_read_item_text, sent)))
        return [make_row(ASSISTANT, text, tool_calls=[*list_item_calls(sent)])]

    async def write_reply(
        self, body: Body, model: str, pieces: AsyncIterator[str]
    ) -> AsyncIterator[bytes]:
        name = uuid4().hex
        item_id = f"msg_{name}"
        empty = make_response(body, model, f"resp_{name}", [])
        if not wants_stream(body):
            text = "".join([piece async for piece in pieces])
            whole = {**empty, "output": [_make_message_item(text, item_id)]}
            yield json.dumps(whole, ensure_ascii=False).encode()
            return
        number = 0

        def write(kind: str, **values: Any) -> bytes:
            nonlocal number
            event = {"type": f"response.{kind}", "sequence_number": number, **values}
            number += 1
            data = json.dumps(event, ensure_ascii=False)
            return f"event: response.{kind}\ndata: {data}\n\n".encode()

        begun = {**empty, "status": "in_progress"}
        yield write("created", response=begun) + write("in_progress", response=begun)
        item = _make_message_item("", item_id, "in_progress")
        yield write("output_item.added", output_index=0, item=item)
        at = {"item_id": item_id, "output_index": 0, "content_index": 0}
        part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
        yield write("content_part.added", **at, part=part)
        text = ""
        async for piece in pieces:
            text += piece
            yield write("output_text.delta", **at, delta=piece, logprobs=[])
        yield write("output_text.done", **at, text=text, logprobs=[])
        yield write("content_part.done", **at, part={**part, "text": text})
        item = _make_message_item(text, item_id)
        yield write("output_item.done", output_index=0, item=item)
        yield write("completed", response={**empty, "output": [item]})


class OpenAICompaction(OpenAIResponses):
    paths = {COMPACT: "POST"}
    upstream_path = "/responses/compact"
    id_path = ""
