"""A long conversation of a client without a memory, which sends all of it each time."""

import json
from collections.abc import Iterator
from random import Random
from typing import Any

from .strict import TOOL_WORD, WORDS

SYSTEM = "You answer questions about a town. " * 8
TOOL = {"type": "object", "properties": {"word": {"type": "string"}}}
# Turns between two calls of a tool.
WITH_TOOL = 5


class LongTalk:
    """The client's own history for the API `chat`, `messages` or `responses`."""

    def __init__(self, wire: str, turns: int, words: int = 30, seed: int = 1) -> None:
        self.wire, self.turns, self.words = wire, turns, words
        self.random = Random(seed)
        self.said: list[dict[str, Any]] = []
        self.bodies: list[bytes] = []

    def play(self) -> Iterator[bytes]:
        """Yield each body to send; pass its answer to take() before the next one."""
        for turn in range(self.turns):
            self.ask(turn, wants_tool=turn % WITH_TOOL == WITH_TOOL - 1)
            yield self.write()
            while result := self.find_result():
                self.said.append(result)
                yield self.write()

    def ask(self, turn: int, *, wants_tool: bool = False) -> None:
        words = " ".join(self.random.choices(WORDS, k=self.words))
        more = f" {TOOL_WORD}." if wants_tool else ""
        self.said.append({"role": "user", "content": f"Turn {turn}: {words}.{more}"})

    def take(self, answer: bytes) -> None:
        value = json.loads(answer)
        if self.wire == "messages":
            self.said.append({"role": "assistant", "content": value["content"]})
        elif self.wire == "responses":
            self.said += value["output"]
        else:
            self.said.append(value["choices"][0]["message"])

    def find_result(self) -> dict[str, Any] | None:
        """Return the result of the last tool call, or None without one."""
        last = self.said[-1]
        result = " ".join(self.random.choices(WORDS, k=40))
        if self.wire == "chat":
            for call in last.get("tool_calls") or ():
                return {"role": "tool", "tool_call_id": call["id"], "content": result}
            return None
        if self.wire == "responses":
            answer = {"type": "function_call_output", "call_id": last.get("call_id")}
            is_call = last.get("type") == "function_call"
            return {**answer, "output": result} if is_call else None
        for block in last["content"]:
            if block["type"] == "tool_use":
                answer = {"type": "tool_result", "tool_use_id": block["id"]}
                reminder = {
                    "type": "text",
                    "text": "<system-reminder>Brief.</system-reminder>",
                }
                return {
                    "role": "user",
                    "content": [{**answer, "content": result}, reminder],
                }
        return None

    def write(self) -> bytes:
        """Return the body with the whole history."""
        if self.wire == "messages":
            tools = [{"name": "look_up", "input_schema": TOOL}]
            body = {"model": "anthropic", "max_tokens": 500, "system": SYSTEM}
            body |= {"tools": tools, "messages": self.said}
        elif self.wire == "responses":
            tools = [{"type": "function", "name": "look_up", "parameters": TOOL}]
            body = {"model": "strict", "max_output_tokens": 500, "store": False}
            body |= {"instructions": SYSTEM, "tools": tools, "input": self.said}
        else:
            function = {"name": "look_up", "parameters": TOOL}
            system = {"role": "system", "content": SYSTEM}
            body = {
                "model": "strict",
                "max_tokens": 500,
                "x_unknown": [1, {"kept": True}],
            }
            body |= {"tools": [{"type": "function", "function": function}]}
            body["messages"] = [system, *self.said]
        self.bodies.append(json.dumps(body, ensure_ascii=False).encode())
        return self.bodies[-1]
