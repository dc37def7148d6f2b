"""A provider that refuses all that a real one may refuse.

That is a body larger than its window, calls without results, results without calls,
thinking without the item that followed it, and thinking with a changed signature. It
counts the bodies that it received, by the rules of each API.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from itertools import pairwise, starmap
from random import Random
from typing import Any

from tests.fakes.openai_rules import find_violations
from tests.fakes.upstream import SUMMARY_MARK, TOO_LONG, Exchange, Upstream, answer_ok

BYTES_PER_TOKEN = 4
TOOL_WORD = "Look it up"
VOCABULARY = (
    "river lantern copper orchard winter signal harbour ladder meadow engine paper "
    "thunder velvet candle bridge pepper market window garden saddle tunnel mirror"
)
WORDS = VOCABULARY.split()


def count_body(body: dict[str, Any]) -> int:
    """Return the tokens by this provider's count: all texts of the body, and tools."""
    system = body.get("system") or body.get("instructions") or ""
    said = [system, body.get("tools") or [], list_said(body)]
    return len(json.dumps(said, ensure_ascii=False).encode()) // BYTES_PER_TOKEN


def list_said(body: dict[str, Any]) -> list[dict[str, Any]]:
    return body["input"] if "input" in body else body["messages"]


def sign(thinking: str) -> str:
    return hashlib.sha256(f"secret {thinking}".encode()).hexdigest()


class StrictUpstream(Upstream):
    def __init__(self, window: int, reply_words: int = 45, seed: int = 1) -> None:
        super().__init__()
        self.window, self.reply_words = window, reply_words
        self.too_long = self.orphans = self.changed = 0
        self.random = Random(6 + seed)

    def next_mode(self, body: dict[str, Any]) -> Any:
        if self._script:
            return self._script.popleft()
        if SUMMARY_MARK in json.dumps(list_said(body)[:1]):
            return answer_ok
        found = self._find_fault(body)
        if found:
            return lambda x: x.error(400, found, code="invalid_request_error")
        if "input" in body:
            return self._answer_responses
        is_chat = "anthropic" not in str(body.get("model"))
        return self._answer_chat if is_chat else self._answer_messages

    def _find_fault(self, body: dict[str, Any]) -> str:
        if count_body(body) > self.window:
            self.too_long += 1
            return TOO_LONG
        if find_orphans(list_said(body)):
            self.orphans += 1
            return "A call and its result were parted."
        if any(signature != sign(thought) for thought, signature in _think(body)):
            self.changed += 1
            return "Invalid signature in a thinking block."
        return ""

    def _speak(self, body: dict[str, Any]) -> tuple[str, bool]:
        """Return a reply, and whether a tool is called before it."""
        last = list_said(body)[-1]
        wants_tool = TOOL_WORD in json.dumps(last.get("content"))
        return " ".join(self.random.choices(WORDS, k=self.reply_words)), wants_tool

    def _answer_chat(self, x: Exchange) -> None:
        text, wants_tool = self._speak(x.body)
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if wants_tool:
            function = {"name": "look_up", "arguments": '{"word": "river"}'}
            call = {"type": "function", "function": function}
            calls = [{**call, "id": f"call_{len(self.requests)}"}]
            message = {**message, "content": None, "tool_calls": calls}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": count_body(x.body), "completion_tokens": 60}
        x.send_json({"choices": [choice], "usage": usage})

    def _answer_messages(self, x: Exchange) -> None:
        text, wants_tool = self._speak(x.body)
        thought = text[:150][::-1]
        thinking = {"type": "thinking", "thinking": thought}
        content = [{**thinking, "signature": sign(thought)}]
        if wants_tool:
            use = {"type": "tool_use", "name": "look_up", "input": {"word": "river"}}
            content.append({**use, "id": f"toolu_{len(self.requests)}"})
        else:
            content.append({"type": "text", "text": text})
        usage = {"input_tokens": count_body(x.body), "output_tokens": 60}
        values = {"type": "message", "role": "assistant", "content": content}
        x.send_json({**values, "stop_reason": "end_turn", "usage": usage})

    def _answer_responses(self, x: Exchange) -> None:
        text, wants_tool = self._speak(x.body)
        name, thought = len(self.requests), text[:150][::-1]
        output: list[dict[str, Any]] = [
            {
                "type": "reasoning",
                "id": f"rs_{name}",
                "summary": [{"type": "summary_text", "text": thought}],
                "encrypted_content": sign(thought),
            }
        ]
        if wants_tool:
            named = {"name": "look_up", "arguments": '{"word": "river"}'}
            call = {"type": "function_call", "id": f"fc_{name}", **named}
            output.append({**call, "call_id": f"call_{name}"})
        else:
            part = {"type": "output_text", "text": text, "annotations": []}
            said = {"type": "message", "id": f"msg_{name}", "role": "assistant"}
            output.append({**said, "content": [part]})
        usage = {"input_tokens": count_body(x.body), "output_tokens": 60}
        values = {"id": f"resp_{name}", "object": "response", "status": "completed"}
        x.send_json({**values, "output": output, "usage": usage})


def _think(body: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the thinking texts of a body, with their signatures."""
    items = list_said(body)
    found = [
        (each["summary"][0]["text"], each["encrypted_content"])
        for each in items
        if each.get("type") == "reasoning"
    ]
    return found + [
        (block["thinking"], block["signature"])
        for message in items
        if isinstance(message.get("content"), list)
        for block in message["content"]
        if block.get("type") == "thinking"
    ]


def find_orphans(messages: Sequence[dict[str, Any]]) -> list[str]:
    """Return faults of calls, results and thinking that OpenAI or Anthropic refuse."""
    if any("type" in each for each in messages):
        return _find_orphan_items(messages)
    blocks = [m["content"] for m in messages if isinstance(m["content"], list)]
    if not any(isinstance(each, dict) for content in blocks for each in content):
        return find_violations({"messages": list(messages)})
    found, due = [], set[str]()
    for message in messages:
        content = message["content"] if isinstance(message["content"], list) else []
        results = {b["tool_use_id"] for b in content if b["type"] == "tool_result"}
        if results != due:
            found.append(f"results {results} for calls {due}")
        due = {b["id"] for b in content if b["type"] == "tool_use"}
    return found + [f"no result of {each}" for each in due]


def _find_orphan_items(items: Sequence[dict[str, Any]]) -> list[str]:
    kinds = [each.get("type", "message") for each in items]
    ids = {"function_call": [], "function_call_output": []}
    for item, kind in zip(items, kinds, strict=True):
        if kind in ids:
            ids[kind].append(item["call_id"])
    calls, results = ids.values()
    found = [f"results {results} for calls {calls}"] if calls != results else []
    after = [each.get("role", "assistant") for each in items[1:]]
    followers = zip(kinds, [*kinds[1:], ""], [*after, ""], strict=True)
    return found + [
        "thinking without what followed it"
        for kind, following, role in followers
        if kind == "reasoning"
        and (following == "function_call_output" or role != "assistant")
    ]


class Shares:
    """The bytes of all bodies that a provider can cache, and the fresh ones.

    A body's beginning can be cached as far as it equals the previous body.
    """

    def __init__(self, bodies: Sequence[bytes]) -> None:
        self.cached = sum(starmap(_count_common, pairwise(bodies)))
        self.total = sum(map(len, bodies))
        self.fresh = self.total - self.cached


def _count_common(one: bytes, other: bytes) -> int:
    size = min(len(one), len(other))
    if one[:size] == other[:size]:
        return size
    low, high = 0, size
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (
            (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
        )
    return low


def read_messages(raw: bytes) -> bytes:
    """Return the part of a body that a provider caches, from its first message on."""
    return re.sub(rb'^.*?"(messages|input)": ?', b"", raw, count=1)
