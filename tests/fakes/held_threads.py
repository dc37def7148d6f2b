"""Conversations that a provider holds: Anthropic's threads, and OpenAI's responses.

The rules and the errors are those that the SDKs' own text names: a thread ends some
minutes after its last request, takes no `system` and no `tools` again, and continues
after each reply only once.
"""

import json
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

from . import wires

BETA = "message-threads-2026-08-12"
Value = dict[str, Any]


@dataclass(frozen=True)
class Held:
    """A reply and the history that the provider holds after it."""

    messages: tuple[Any, ...]
    setup: Value
    at: float


@dataclass
class HeldState:
    """Answers requests in order; `now` is its clock, in seconds."""

    seconds: float = 300.0
    now: float = 0.0
    # Seconds between two events of a stream.
    pace: float = 0.0
    held: dict[str, Held] = field(default_factory=dict)
    continued: set[str] = field(default_factory=set)
    running: set[str] = field(default_factory=set)
    # (id of the reply before, all messages that the model read, its setup) of each.
    read: list[tuple[str, list[Any], Value]] = field(default_factory=list)
    replies: list[wires.Reply] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    lock: Lock = field(default_factory=Lock)

    def forget_all(self) -> None:
        """Forget all, as after the end of the provider's process."""
        with self.lock:
            self.held.clear()

    def answer(self, x: Any) -> None:
        wire = wires.find_wire(x.handler.path)
        with self.lock:
            previous, refusal = self._judge(wire, x)
            if refusal is None:
                reply, whole = self._reply(wire, x.body, previous)
        if refusal is not None:
            status, value = refusal
            x.send_json(value, status)
            return
        if not x.is_stream:
            x.send_json(whole)
            return
        for event in _write_events(wire, x.body["model"], reply, whole):
            x.wait(self.pace)
            x.write(event)
        x.close()

    def delete(self, x: Any) -> None:
        """Answer `DELETE /v1/responses/{id}`."""
        named = x.handler.path.rpartition("/")[2]
        with self.lock:
            found = self.held.pop(named, None)
            self.deleted.append(named)
        if found is None:
            x.error(404, f"Response with id '{named}' not found.", kind="not_found")
            return
        x.send_json({"id": named, "object": "response", "deleted": True})

    def _judge(self, wire: str, x: Any) -> tuple[str, tuple[int, Value] | None]:
        """The reply to continue after, or how the request is refused."""
        body = x.body
        if wire == "responses":
            previous = body.get("previous_response_id") or ""
            if previous and previous not in self.held:
                return "", (400, _missing_response(previous))
            return previous, None
        thread = body.get("thread")
        if thread is None:
            return "", None
        if BETA not in x.handler.headers.get("anthropic-beta", ""):
            return "", _refuse(400, "thread: Extra inputs are not permitted")
        if not isinstance(thread, dict):
            return "", _refuse(400, "thread: Input should be an object")
        if thread.get("type") == "create":
            return "", None
        return self._judge_continue(body, thread["previous_message_id"])

    def _judge_continue(
        self, body: Value, previous: str
    ) -> tuple[str, tuple[int, Value] | None]:
        state = self.held.get(previous)
        if {"system", "tools"} & body.keys():
            return "", _refuse(400, "system: not allowed with thread.continue")
        if state is None or self.now - state.at > self.seconds:
            return "", _refuse(404, "No usable thread.", "thread_not_found")
        if previous in self.running:
            return "", _refuse(400, "In flight.", "thread_continue_in_flight")
        if previous in self.continued:
            return "", _refuse(400, "Continued.", "thread_already_continued")
        return previous, None

    def _reply(
        self, wire: str, body: Value, previous: str
    ) -> tuple[wires.Reply, Value]:
        before = self.held.get(previous)
        given = body["messages"] if wire == "messages" else _list_input(body)
        setup = {name: body[name] for name in ("system", "tools") if name in body}
        if before and wire == "messages":
            setup = before.setup
            self.continued.add(previous)
        messages = [*(before.messages if before else ()), *given]
        self.read.append((previous, messages, setup))
        reply = self.replies.pop(0) if self.replies else _echo(wire, messages)
        reply = wires.name_calls(reply)
        whole = wires.write_whole(wire, body["model"], reply)
        whole["usage"] |= {"input_tokens": count(messages) + count(setup)}
        said = (
            whole["output"]
            if wire == "responses"
            else [{"role": "assistant", "content": whole["content"]}]
        )
        if wire == "responses" or "thread" in body:
            state = Held((*messages, *said), setup, self.now)
            if body.get("store") is not False:
                self.held[whole["id"]] = state
            if before and wire == "messages":
                self.held[previous] = replace(before, at=self.now)
        return reply, whole


def count(value: Any) -> int:
    return -(-len(json.dumps(value)) // 4)


def _echo(wire: str, messages: list[Any]) -> wires.Reply:
    name = "input" if wire == "responses" else "messages"
    said = wires.list_said(wire, {name: messages})
    return wires.Reply(f"Reply {len(messages)} to: {said[-1][1] if said else ''}")


def _list_input(body: Value) -> list[Any]:
    given = body["input"]
    return [{"role": "user", "content": given}] if isinstance(given, str) else given


def _missing_response(name: str) -> Value:
    message = f"Previous response with id '{name}' not found."
    error = {"message": message, "type": "invalid_request_error"}
    error |= {"param": "previous_response_id", "code": "previous_response_not_found"}
    return {"error": error}


def _refuse(status: int, message: str, code: str = "") -> tuple[int, Value]:
    kind = "not_found_error" if status == 404 else "invalid_request_error"
    error: Value = {"type": kind, "message": message}
    if code:
        error["details"] = {"error_code": code}
    return status, {"type": "error", "error": error}


def _write_events(wire: str, model: str, reply: wires.Reply, whole: Value) -> Any:
    """The events of a reply, with the id, the items and the usage of the whole one."""
    for event in wires.write_events(wire, model, reply):
        head, _, data = event.partition(b"data: ")
        value = json.loads(data)
        if "message" in value:
            value["message"] |= {name: whole[name] for name in ("id", "usage")}
        if "response" in value:
            is_done = value["type"] == "response.completed"
            names = ("id", "output", "usage") if is_done else ("id",)
            value["response"] |= {name: whole[name] for name in names}
        yield head + b"data: " + json.dumps(value).encode() + b"\n\n"
