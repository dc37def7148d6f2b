"""A provider that compacts histories itself, as Anthropic and OpenAI do.

It says why its cache could not be used, and refuses what the real ones refuse.

After the types of anthropic 2.14 and openai 3.57.
"""

import hashlib
import json
from collections.abc import Iterator
from itertools import count
from typing import Any

from .upstream import Exchange, Upstream

COMPACT, EDIT = "compact-2026-09-04", "compact-2026-01-12"
DIAGNOSIS = "cache-diagnosis-2026-04-07"
# Prompt-affecting fields besides the four that are compared.
OTHERS = ("thinking", "tool_choice", "output_config")
NONE: dict[str, Any] = {}


def sign(text: str) -> str:
    return hashlib.sha256(f"secret {text}".encode()).hexdigest()


def count_tokens(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False)) // 4 + 1


def read_texts(message: dict[str, Any]) -> str:
    content = message.get("content")
    blocks = content if isinstance(content, list) else [{"text": content or ""}]
    return "\n".join(each.get("text") or "" for each in blocks)


def list_summaries(messages: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for message in messages:
        content = message.get("content")
        for block in content if isinstance(content, list) else ():
            if block.get("type") == "compaction":
                yield block


def bare(value: Any) -> Any:
    """A value without cache marks; a text is a list of one."""
    if isinstance(value, list):
        return [bare(each) for each in value]
    if isinstance(value, dict):
        kept = {n: bare(v) for n, v in value.items() if n != "cache_control"}
        for name in kept.keys() & {"input_schema", "input"}:
            # The model reads them in the order in which they are written.
            kept[name] = [*kept[name].items()] if kept[name] else []
            kept[name] = json.dumps(kept[name])
        if isinstance(kept.get("content"), str):
            kept["content"] = [{"type": "text", "text": kept["content"]}]
        return kept
    return value


class CompactingProvider(Upstream):
    """`forgotten`: texts that its summaries leave out. `extra_tokens` are added to the
    counts of a reply, so that its iterations do not sum. `closed` betas are refused.
    Where it `fails`, its summaries have no content."""

    is_strict = False

    def __init__(self) -> None:
        super().__init__()
        self.forgotten: set[str] = set()
        self.extra_tokens = 0
        self.fails = False
        self.closed: set[str] = set()
        # Bodies by the ids of their replies, and texts by what only it can read.
        self.bodies: dict[str, dict[str, Any]] = {}
        self.sealed: dict[str, str] = {}
        self.numbers = count(1)

    def next_mode(self, body: dict[str, Any]) -> Any:
        if self._script:
            return self._script.popleft()
        return self._answer_messages if "messages" in body else self._answer_responses

    def summarise(self, texts: list[str]) -> str:
        gone = self.forgotten
        kept = (each for each in texts if not any(lost in each for lost in gone))
        return "\n".join(kept)

    # Anthropic

    def _answer_messages(self, x: Exchange) -> None:
        if fault := self._find_fault(x):
            kind = {"type": "invalid_request_error", "message": fault}
            x.send_json({"type": "error", "error": kind}, 400)
            return
        body, name = x.body, f"msg_{next(self.numbers)}"
        texts = self._read_context(body["messages"])
        blocks: list[dict[str, Any]] = []
        used = [self._use("message", body, 7)]
        edit = self._find_edit(body)
        is_due = edit and count_tokens(body["messages"]) > edit["trigger"]["value"]
        if is_due or "compaction" in body:
            text = self.summarise(texts)
            signed = {"content": text, "signature": sign(text)}
            sealed = {"encrypted_content": f"meta-{next(self.numbers)}"}
            blocks = [{"type": "compaction", **signed, **sealed}]
            if self.fails:
                blocks = [{"type": "compaction", "content": None}]
            used = [self._use("compaction", body, count_tokens(text)), *used]
        is_alone = "compaction" in body or (
            is_due and edit.get("pause_after_compaction")
        )
        if is_alone:
            used = used[:1]
        else:
            blocks.append({"type": "text", "text": f"Reply to: {texts[-1]}"})
        reason = "compaction" if is_alone else "end_turn"
        stated = used[-1] if not is_alone else NONE
        usage = {
            "input_tokens": stated.get("input_tokens", 0) + self.extra_tokens,
            "output_tokens": stated.get("output_tokens", 0),
            "cache_read_input_tokens": stated.get("cache_read_input_tokens", 0),
            "cache_creation_input_tokens": 0,
            **({"iterations": used} if blocks[0]["type"] == "compaction" else {}),
        }
        message = {
            **{"id": name, "type": "message", "role": "assistant"},
            **{"model": body["model"], "content": blocks, "stop_reason": reason},
            **{"stop_sequence": None, "usage": usage},
            "diagnostics": self._diagnose(body),
        }
        self.bodies[name] = body
        if x.is_stream:
            for event in list_events(message):
                x.write(f"event: {event['type']}\n".encode())
                x.write(f"data: {json.dumps(event)}\n\n".encode())
            x.close()
        else:
            x.send_json(message)

    def _use(self, kind: str, body: dict[str, Any], output: int) -> dict[str, Any]:
        read = count_tokens(body["messages"])
        return {
            **{"type": kind, "input_tokens": read - read // 3, "output_tokens": output},
            **{"cache_read_input_tokens": read // 3, "cache_creation_input_tokens": 0},
        }

    def _find_edit(self, body: dict[str, Any]) -> dict[str, Any]:
        edits = (body.get("context_management") or {}).get("edits") or ()
        found = [each for each in edits if each["type"] == "compact_20260112"]
        return {"trigger": {"value": 150_000}, **found[0]} if found else {}

    def _find_fault(self, x: Exchange) -> str:
        body = x.body
        betas = {
            b.strip() for b in x.handler.headers.get("anthropic-beta", "").split(",")
        }
        if refused := betas & self.closed:
            return f"Unexpected value(s) {refused} for the `anthropic-beta` header."
        if "compaction" in body and COMPACT not in betas:
            return "compaction: Extra inputs are not permitted"
        if self._find_edit(body) and EDIT not in betas:
            return "context_management: compact_20260112 is not permitted"
        if "compaction" in body and "context_management" in body:
            return "compaction cannot be combined with context_management"
        for block in list_summaries(body["messages"]):
            if not betas & {COMPACT, EDIT}:
                return "messages: compaction blocks are not permitted"
            if block["content"] and block.get("signature") != sign(block["content"]):
                return "Invalid `signature` in `compaction` block"
        return ""

    def _read_context(self, messages: list[dict[str, Any]]) -> list[str]:
        """The texts from the last summary on."""
        texts: list[str] = []
        for message in messages:
            for block in list_summaries([message]):
                # One without content is none.
                texts = [block["content"]] if block["content"] else texts
            texts += filter(None, [read_texts(message)])
        return texts

    def _diagnose(self, body: dict[str, Any]) -> dict[str, Any] | None:
        asked = body.get("diagnostics")
        if not asked or asked.get("previous_message_id") is None:
            return None
        before = self.bodies.get(asked["previous_message_id"])
        if before is None:
            reason: dict[str, Any] = {"type": "previous_message_not_found"}
            return {"cache_miss_reason": reason}
        if not (code := find_reason(before, body)):
            return None
        reason = {"type": code}
        if code.endswith("_changed"):
            reason["cache_missed_input_tokens"] = count_tokens(before["messages"])
        return {"cache_miss_reason": reason}

    # OpenAI

    def _answer_responses(self, x: Exchange) -> None:
        items = x.body["input"]
        items = (
            [{"role": "user", "content": items}] if isinstance(items, str) else items
        )
        try:
            texts = self._read_items(items)
        except ValueError as fault:
            x.error(400, str(fault))
            return
        value = self._respond(x, items, texts)
        if not x.is_stream:
            x.send_json(value)
            return
        for place, event in enumerate(list_response_events(value)):
            event = {**event, "sequence_number": place}
            x.write(f"event: {event['type']}\n".encode())
            x.write(f"data: {json.dumps(event)}\n\n".encode())
        x.close()

    def _read_items(self, items: list[dict[str, Any]]) -> list[str]:
        texts: list[str] = []
        for at, item in enumerate(items):
            kind = item.get("type")
            if kind == "compaction_trigger" and at < len(items) - 1:
                raise ValueError("compaction_trigger must be the final input item.")
            if kind != "compaction":
                texts += filter(None, [read_texts(item)])
            elif (text := self.sealed.get(item.get("encrypted_content"))) is not None:
                texts = [text]
            else:
                raise ValueError("The encrypted content could not be verified.")
        return texts

    def _respond(
        self, x: Exchange, items: list[dict[str, Any]], texts: list[str]
    ) -> dict[str, Any]:
        number = next(self.numbers)
        is_path = x.handler.path.endswith("/compact")
        is_asked = items[-1].get("type") == "compaction_trigger"
        edits = x.body.get("context_management") or ()
        is_due = any(count_tokens(items) > each["compact_threshold"] for each in edits)
        output = [each for each in items if is_path and each.get("role") == "user"]
        if is_path or is_asked or is_due:
            seal = sign(f"{number}") * 2
            self.sealed[seal] = self.summarise(texts)
            head = {"type": "compaction", "id": f"cmp_{number}"}
            output.append({**head, "encrypted_content": seal})
        if not (is_path or is_asked):
            part = {"type": "output_text", "annotations": [], "logprobs": []}
            part["text"] = f"Reply to: {texts[-1]}"
            head = {"type": "message", "id": f"msg_{number}", "role": "assistant"}
            output.append({**head, "status": "completed", "content": [part]})
        details = {"cached_tokens": 3, "cache_write_tokens": 0}
        read, kind = count_tokens(items), "response"
        usage = {
            **{"input_tokens": read, "input_tokens_details": details},
            **{"output_tokens": 40, "output_tokens_details": {"reasoning_tokens": 0}},
            "total_tokens": read + 40,
        }
        return {
            **{"id": f"resp_{number}", "created_at": 1, "status": "completed"},
            **{"object": f"{kind}.compaction" if is_path else kind},
            **{"model": x.body["model"], "output": output, "usage": usage},
            **{"parallel_tool_calls": True, "tool_choice": "auto", "tools": []},
            **{"error": None, "incomplete_details": None},
        }


def find_reason(before: dict[str, Any], body: dict[str, Any]) -> str:
    """The documented reason of two requests, in the order of the SDK's types."""
    one, other = bare(before), bare(body)
    if any(one.get(n) != other.get(n) for n in ("model", "speed")):
        return "model_changed"
    for name in ("system", "tools"):
        if one.get(name) != other.get(name):
            return f"{name}_changed"
    known = one["messages"]
    if other["messages"][: len(known)] != known:
        return "messages_changed"
    if any(one.get(name) != other.get(name) for name in OTHERS):
        return "unavailable"
    return ""


def list_events(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    usage = {**message["usage"], "output_tokens": 1}
    usage.pop("iterations", None)
    head = {**message, "content": [], "stop_reason": None, "usage": usage}
    yield {"type": "message_start", "message": head}
    for index, block in enumerate(message["content"]):
        empty, deltas = {**block, "text": ""}, [{"type": "text_delta", **block}]
        if block["type"] == "compaction":
            empty = {**block, "content": None, "encrypted_content": None}
            names = ("content", "encrypted_content")
            told = {name: block.get(name) for name in names}
            deltas = [{"type": "compaction_delta", **told}]
        else:
            words = block["text"].split(" ")
            texts = [word if n == 0 else f" {word}" for n, word in enumerate(words)]
            deltas = [{"type": "text_delta", "text": text} for text in texts]
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    delta = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": message["usage"]}
    yield {"type": "message_stop"}


def list_response_events(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    begun = {**value, "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    for index, item in enumerate(value["output"]):
        at = {"output_index": index}
        yield {"type": "response.output_item.added", **at, "item": {**item}}
        if item["type"] == "compaction":
            yield {
                "type": "response.compaction.compacting",
                **at,
                "item_id": item["id"],
            }
        else:
            at |= {"item_id": item["id"], "content_index": 0}
            text = item["content"][0]["text"]
            yield {
                "type": "response.output_text.delta",
                **at,
                "delta": text,
                "logprobs": [],
            }
        yield {
            "type": "response.output_item.done",
            "output_index": index,
            "item": item,
        }
    yield {"type": "response.completed", "response": value}
