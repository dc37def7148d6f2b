"""Parsing a reply while its bytes go to the client.

No content of a reply can stop them.
"""

import json
import zlib
from typing import Any

from langchain_core.messages.tool import tool_call_chunk

from chatsite.llm.event_stream import MAX_JSON_BYTES, EventReader
from chatsite.llm.gathered import Calls, TextParts

from .provider_report import ProviderReport, read_count

MAX_CHARS = 1_000_000


class ReplyReader:
    """A parser that takes a reply in chunks that are cut anywhere.

    It collects `text`, `reasoning`, `calls`, the finish reason and the tokens that the
    provider reports.
    """

    def __init__(self, kind: str, encoding: str = "") -> None:
        self.finish_reason: str | None = None
        self.tokens_input: int | None = None
        self.tokens_cached: int | None = None
        self.tokens_output: int | None = None
        self.report = ProviderReport()
        self.calls = Calls(MAX_CHARS)
        self.is_error = False
        # Whether the stream says that nothing follows.
        self.is_done = False
        self.is_garbled = False
        self._new: list[str] = []
        self._text, self._reasoning = TextParts(MAX_CHARS), TextParts(MAX_CHARS)
        self._events = EventReader() if "event-stream" in kind else None
        self._whole = bytearray()
        is_packed = encoding in ("gzip", "deflate")
        self._unpacker = zlib.decompressobj(zlib.MAX_WBITS | 32) if is_packed else None

    @property
    def text(self) -> str:
        return str(self._text)

    @property
    def reasoning(self) -> str:
        return str(self._reasoning)

    @property
    def is_begun(self) -> bool:
        return bool(self._text or self._reasoning or self.calls)

    def take_new(self) -> str:
        """Return the text since the last call."""
        text = "".join(self._new)
        self._new.clear()
        return text

    def feed(self, chunk: bytes) -> None:
        if self.is_garbled:
            return
        try:
            if self._unpacker:
                chunk = self._unpacker.decompress(chunk, MAX_JSON_BYTES)
            if self._events is None:
                self._whole += chunk[: MAX_JSON_BYTES - len(self._whole)]
                return
            for data in self._events.feed(chunk):
                if data.startswith("[DONE]"):
                    self.is_done = True
                else:
                    self._read(data)
        except (ValueError, zlib.error, RecursionError):
            # The client gets the bytes unchanged and can handle them.
            self.is_garbled = True

    def finish_body(self) -> None:
        """Parse what is left, as the body has ended."""
        if self._events is None and not self.is_garbled:
            try:
                self._read(self._whole.decode())
            except (ValueError, RecursionError):
                self.is_garbled = True

    def _read(self, data: str) -> None:
        value = json.loads(data)
        if not isinstance(value, dict):
            return
        if value.get("error"):
            self.is_error = True
            return
        try:
            self.read_object(value)
        except (TypeError, AttributeError, LookupError):
            self.is_garbled = True

    def read_object(self, value: dict[str, Any]) -> None:
        raise NotImplementedError

    def to_message(self) -> dict[str, Any]:
        raise NotImplementedError

    def add_text(self, text: object) -> None:
        if isinstance(text, str) and text:
            self._text.add_text(text)
            self._new.append(text)

    def add_call(self, name: object, args: str, call_id: object, index: Any) -> None:
        name, call_id = str(name or ""), str(call_id or "")
        chunk = tool_call_chunk(name=name, args=args, id=call_id, index=index)
        self.calls.add(chunk)

    def add_reasoning(self, text: object) -> None:
        if isinstance(text, str):
            self._reasoning.add_text(text)

    def read_usage(self, usage: object, read: str, written: str) -> None:
        if not isinstance(usage, dict):
            return
        self.tokens_input = read_count(usage, read) or self.tokens_input
        self.tokens_output = read_count(usage, written) or self.tokens_output
        details = usage.get("prompt_tokens_details")
        if isinstance(details, dict):
            if "cache_write_tokens" in details:
                self.report.read_openai(details)
            self.tokens_cached = read_count(details, "cached_tokens") or None
