"""Anthropic's Messages API."""

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any
from uuid import uuid4

from django.conf import settings
from langchain_core.messages.tool import tool_call_chunk

from memory.engine.tokens import count_text

from .api import Api, Body, list_declared_tools, wants_stream
from .errors import ApiError
from .provider_report import COMPACTION
from .reply_reader import ReplyReader
from .rows import (
    ASSISTANT,
    TOOL,
    USER,
    TranscriptRow,
    make_call_value,
    make_row,
    name_medium,
    read_call_arguments,
)

COUNT = "/v1/messages/count_tokens"
ADDITION, REMOVAL = "tool_addition", "tool_removal"
TOOL_CHANGES = {ADDITION: "+", REMOVAL: "−"}
# Blocks that are no text of the transcript.
UNREAD = frozenset(
    {*("tool_use", "tool_result", "thinking", "redacted_thinking"), COMPACTION}
)
# Anthropic's error types, by status.
TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    502: "api_error",
    503: "overloaded_error",
    504: "timeout_error",
}
# A conversation that the provider holds, and the errors by which clients know that they
# have to send all of it again.
THREAD = "thread"
THREAD_CODES = ("thread_not_found", "thread_unsupported_request")


def read_changed_tool(block: Mapping[str, Any]) -> tuple[str, dict[str, Any] | None]:
    """Return the name of a tool that a history adds or removes.

    Also return its definition; None: another list of the body has it.
    """
    tool = block.get("tool")
    tool = tool if isinstance(tool, dict) else {}
    definition = tool.get("definition")
    definition = definition if isinstance(definition, dict) else None
    name = (definition or tool).get("name") or tool.get("server_name") or ""
    return str(name), definition


def _list_tool_changes(messages: Sequence[Any]) -> Iterator[dict[str, Any]]:
    for message in messages:
        content = message.get("content") if isinstance(message, dict) else None
        for block in list_blocks(content):
            # The provider's summary has the changes of what it covers.
            inner = block.get("tool_changes") if block.get("type") == COMPACTION else ()
            for each in (block, *list_blocks(inner)):
                if each.get("type") in TOOL_CHANGES:
                    yield each


def list_blocks(content: object) -> Iterator[dict[str, Any]]:
    if isinstance(content, str):
        yield {"type": "text", "text": content}
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict):
            yield block


def read_block_texts(content: object) -> str:
    """Return the text that users read: no reasoning and no tool calls."""
    texts = []
    for block in list_blocks(content):
        kind, text = block.get("type"), block.get("text")
        if kind == "text":
            texts.append(text if isinstance(text, str) else "")
        elif kind in TOOL_CHANGES:
            texts.append(f"[{TOOL_CHANGES[kind]}{read_changed_tool(block)[0]}]")
        elif kind not in UNREAD:
            texts.append(name_medium(kind))
    return "\n".join(filter(None, texts))


class AnthropicReader(ReplyReader):
    """A parser of a message, whole or in events."""

    def __init__(self, kind: str, encoding: str = "") -> None:
        super().__init__(kind, encoding)
        self.message_id = ""
        self._usage: dict[str, Any] = {}
        # The provider's summaries by their places in the reply.
        self._summaries: dict[int | None, dict[str, Any]] = {}

    def read_object(self, value: dict[str, Any]) -> None:
        match value.get("type"):
            case "message_start":
                self._read_head(value["message"])
            case "content_block_start":
                self._read_block(value.get("index"), value["content_block"])
            case "content_block_delta":
                self._read_delta(value.get("index"), value["delta"])
            case "message_delta":
                self._read_tokens(value.get("usage"))
                self.finish_reason = value["delta"].get("stop_reason")
            case "message_stop":
                self.is_done = True
            case "message":
                self._read_head(value)
                for index, block in enumerate(list_blocks(value.get("content"))):
                    self._read_block(index, block)
                self.finish_reason = value.get("stop_reason")

    def _read_head(self, message: dict[str, Any]) -> None:
        if isinstance(message.get("id"), str):
            self.message_id = message["id"]
        self._read_tokens(message.get("usage"))
        self.report.read_miss(message.get("diagnostics"))

    def _read_block(self, index: int | None, block: dict[str, Any]) -> None:
        if block.get("type") == COMPACTION:
            self._summaries[index] = {**block}
            self.report.summaries = [*self._summaries.values()]
        if block.get("type") == "redacted_thinking":
            self.report.hidden += count_text(str(block.get("data") or ""))
        self.add_text(block.get("text"))
        self.add_reasoning(block.get("thinking"))
        if block.get("type") == "tool_use":
            given = block.get("input")
            args = json.dumps(given) if given else ""
            self.add_call(block.get("name"), args, block.get("id"), index)

    def _read_delta(self, index: int | None, delta: dict[str, Any]) -> None:
        if summary := self._summaries.get(index):
            # Each of its fields comes whole.
            summary |= {name: delta[name] for name in delta.keys() - {"type"}}
            return
        self.add_text(delta.get("text"))
        self.add_reasoning(delta.get("thinking"))
        if isinstance(part := delta.get("partial_json"), str):
            piece = tool_call_chunk(name=None, args=part, id=None, index=index)
            self.calls.add(piece)

    def _read_tokens(self, usage: object) -> None:
        if not isinstance(usage, dict):
            return
        # Later events have only some of the counts, or add to them.
        self._usage |= {n: value for n, value in usage.items() if value is not None}
        self.report.read_anthropic(self._usage)
        if total := self.report.total:
            self.tokens_input = total.read or None
            self.tokens_output = total.output or None
            self.tokens_cached = total.cached or None

    def to_message(self) -> dict[str, Any]:
        """Return the reply as a client sends it back."""
        blocks = [{"type": "text", "text": self.text}] if self.text else []
        calls = [
            {
                "type": "tool_use",
                "id": each["id"],
                "name": each["name"],
                "input": read_call_arguments(each["args"]),
            }
            for each in self.calls.to_chunks()
        ]
        said = [*self.report.summaries, *blocks, *calls]
        return {"id": self.message_id, "role": "assistant", "content": said}


def _write_event(kind: str, **values: Any) -> bytes:
    data = json.dumps({"type": kind, **values}, ensure_ascii=False)
    return f"event: {kind}\ndata: {data}\n\n".encode()


class AnthropicMessages(Api):
    name = "messages"
    paths = {"/v1/messages": "POST", COUNT: "POST", "/v1/models": "GET"}
    upstream_path = "/v1/messages"
    reader = AnthropicReader
    long_factor = 2.0
    count_path = COUNT
    models_path = "/v1/models"
    models_headers = {"anthropic-version": "2023-06-01"}
    previous_field = "thread.previous_message_id"
    not_found_code = THREAD_CODES[0]
    holds_setup = True

    def find_upstream(self, _model: str) -> tuple[str, dict[str, str]] | None:
        key, url = settings.ANTHROPIC_API_KEY, settings.ANTHROPIC_BASE_URL
        if not key and not url:
            return None
        return url or "https://api.anthropic.com", {"x-api-key": key} if key else {}

    def name_upstream(self, _model: str) -> str:
        return "" if settings.ANTHROPIC_BASE_URL else "Anthropic"

    def write_error(self, error: ApiError) -> bytes:
        kind = TYPES.get(error.status, "invalid_request_error")
        values: dict[str, Any] = {"type": kind, "message": error.detail}
        if error.code in THREAD_CODES:
            values["details"] = {"error_code": error.code}
        written = {"type": "error", "error": values}
        return json.dumps(written, ensure_ascii=False).encode()

    def list_models(self, models: list[dict[str, Any]]) -> dict[str, Any]:
        ends = [models[at]["id"] for at in (0, -1)] if models else [None, None]
        named = [{"type": "model", "display_name": one["id"], **one} for one in models]
        first, last = ends
        return {"data": named, "has_more": False, "first_id": first, "last_id": last}

    def list_setup(self, body: Body) -> list[str]:
        text = read_block_texts(body.get("system"))
        return [text] if text else []

    def list_tools(self, body: Body) -> list[Any]:
        """Return the tools as of the request: as its history adds and removes them."""
        declared = list_declared_tools(body)
        changes = [*_list_tool_changes(self.list_sent(body))]
        if not changes:
            return declared
        found = {each.get("name"): each for each in declared if isinstance(each, dict)}
        # A tool that is only referred to comes back as it was declared.
        known = {**found}
        for block in changes:
            name, definition = read_changed_tool(block)
            if block["type"] == ADDITION and (tool := definition or known.get(name)):
                known[name] = found[name] = tool
            elif block["type"] != ADDITION:
                found.pop(name, None)
        return [*found.values()]

    def read_previous(self, body: Body) -> Any:
        """Return the id of the reply after which a thread continues, or ""."""
        if not isinstance(thread := body.get(THREAD), dict):
            return ""
        return thread.get("previous_message_id") or ""

    def make_rows(self, sent: Sequence[Mapping[str, Any]]) -> list[TranscriptRow]:
        """Return the transcript rows of a message.

        Results of tools come before the text of the user.
        """
        message = sent[0]
        content = message.get("content")
        text = read_block_texts(content)
        if message.get("role") == "assistant":
            calls = [
                make_call_value(block.get("name"), block.get("input"), block.get("id"))
                for block in list_blocks(content)
                if block.get("type") == "tool_use"
            ]
            return [make_row(ASSISTANT, text, tool_calls=calls)]
        rows = [
            make_row(
                TOOL,
                read_block_texts(block.get("content")),
                tool_call_id=str(block.get("tool_use_id") or "")[:100],
            )
            for block in list_blocks(content)
            if block.get("type") == "tool_result"
        ]
        return [*rows, make_row(USER, text)] if text or not rows else rows

    async def write_reply(
        self, body: Body, model: str, pieces: AsyncIterator[str]
    ) -> AsyncIterator[bytes]:
        message: dict[str, Any] = {
            **{
                "id": f"msg_{uuid4().hex}",
                "type": "message",
                "role": "assistant",
                "model": model,
            },
            **{"content": [], "stop_reason": None, "stop_sequence": None},
            "usage": {"input_tokens": 0, "output_tokens": 0},
        }
        if not wants_stream(body):
            text = "".join([piece async for piece in pieces])
            content = [{"type": "text", "text": text}]
            whole = {**message, "content": content, "stop_reason": "end_turn"}
            yield json.dumps(whole, ensure_ascii=False).encode()
            return
        yield _write_event("message_start", message=message)
        block = {"type": "text", "text": ""}
        yield _write_event("content_block_start", index=0, content_block=block)
        async for piece in pieces:
            delta = {"type": "text_delta", "text": piece}
            yield _write_event("content_block_delta", index=0, delta=delta)
        yield _write_event("content_block_stop", index=0)
        ended = {"stop_reason": "end_turn", "stop_sequence": None}
        yield _write_event("message_delta", delta=ended, usage={"output_tokens": 0})
        yield _write_event("message_stop")
