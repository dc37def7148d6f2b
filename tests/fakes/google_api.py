"""Google's streamGenerateContent: the events of entries of messages_api's script."""

import base64
import json

from .wires import split_words

PATH, CONTENT_TYPE = ":streamGenerateContent", "text/event-stream"
# Google counts again in each event, and its prompt includes what the cache had.
USAGE = {
    **{"promptTokenCount": 40, "cachedContentTokenCount": 30},
    **{"candidatesTokenCount": 5, "totalTokenCount": 45},
}
STATUS = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 429: "RESOURCE_EXHAUSTED"}


def make_error(status, text):
    name = STATUS.get(status, "UNAVAILABLE")
    return {"error": {"code": status, "message": text, "status": name}}


def make_event(*parts, **values):
    content = {"role": "model", "parts": list(parts)}
    candidate = {"content": content, "index": 0, **values}
    made = {"candidates": [candidate], "usageMetadata": USAGE}
    return {**made, "modelVersion": "gemini-3-pro"}


IDLE = make_event()


def list_events(entry):
    if isinstance(entry, str):
        yield make_event({"text": "Wait"})
        if entry == "overloaded":
            yield make_error(503, "The model is overloaded.")
        return
    for block in entry:
        yield from (make_event(part) for part in list_parts(block))
    yield make_event(finishReason="STOP")


def list_parts(block):
    if block["type"] == "tool_use":
        called = {n: block[n] for n in ("id", "name")} | {"args": block["input"]}
        yield {"functionCall": called, "thoughtSignature": sign(block["id"])}
    elif block["type"] == "thinking":
        for word in split_words(block["thinking"]):
            yield {"text": word, "thought": True}
    else:
        for word in split_words(block["text"]):
            yield {"text": word}


def sign(text):
    return base64.b64encode(f"signed {text}".encode()).decode()


def encode(event):
    return f"data: {json.dumps(event)}\r\n\r\n".encode()
