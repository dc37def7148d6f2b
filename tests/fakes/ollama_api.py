"""Ollama's /api/chat: the lines of entries of messages_api's script."""

import json

from .wires import split_words

PATH, CONTENT_TYPE = "/api/chat", "application/x-ndjson"
COUNTS = {"prompt_eval_count": 40, "eval_count": 5}


def make_error(status, text):
    return {"error": text}


def make_line(**message):
    said = {"role": "assistant", "content": "", **message}
    return {"model": "qwen3", "message": said, "done": False}


IDLE = make_line()


def list_events(entry):
    if isinstance(entry, str):
        yield make_line(content="Wait")
        if entry == "overloaded":
            yield make_error(200, "overloaded")
        return
    for block in entry:
        if block["type"] == "tool_use":
            called = {"name": block["name"], "arguments": block["input"]}
            yield make_line(tool_calls=[{"function": called}])
            continue
        name = "thinking" if block["type"] == "thinking" else "content"
        for word in split_words(block[block["type"]]):
            yield make_line(**{name: word})
    yield make_line() | {"done": True, "done_reason": "stop", **COUNTS}


def encode(event):
    return f"{json.dumps(event)}\n".encode()
