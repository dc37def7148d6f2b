"""The canonical form of a message, independent of how a client writes it.

A message is its role and its parts in order. Two messages are the same if these are:
no ids, no cache marks, no reasoning, no difference between absent and null, or between
a text and a list of one text.
"""

import base64
import binascii
import hashlib
import json
import unicodedata
from collections.abc import Mapping
from json.encoder import encode_basestring
from typing import Any

Part = dict[str, Any]

# Fields that change from request to request and say nothing about the message.
LEFT_OUT = frozenset({"id", "cache_control", "status", "index", "annotations"})


class UnreadableHistoryError(Exception):
    """A body that is no history of this API; the text explains the error to users."""


def normalize_text(text: str) -> str:
    """Return the text in NFC, without white space at its end."""
    if not text.isascii() and not unicodedata.is_normalized("NFC", text):
        text = unicodedata.normalize("NFC", text)
    return text.rstrip()


def write_canonical(value: Any) -> str:
    """Return JSON with sorted keys, no spaces, and unescaped characters."""
    try:
        return json.dumps(
            value, ensure_ascii=False, sort_keys=True, separators=(",", ":")
        )
    except RecursionError:
        raise UnreadableHistoryError("The messages are nested too deeply.") from None


def text_part(text: str) -> Part:
    return {"text": text}


def call_part(name: Any, arguments: Any) -> Part:
    """Return the part of a tool call.

    The arguments are a value, or the JSON text that a model wrote.
    """
    if isinstance(arguments, str):
        arguments = _read_arguments(arguments)
    return {"call": str(name or ""), "arguments": write_canonical(arguments)}


def _read_arguments(written: str) -> Any:
    try:
        return json.loads(written) if written.strip() else {}
    except (ValueError, RecursionError):
        # A model may write invalid JSON: then its text is compared.
        return normalize_text(written)


def result_part(call: int | None, parts: list[Part]) -> Part:
    """Return the part of a tool result.

    `call` is the index of its call in the message that made it, or None.
    """
    return {"result": call, "parts": join_texts(parts)}


def media_part(kind: str, written: str) -> Part:
    """Return the part of an image, audio or file.

    It is written as base64, a data URL with base64, or a URL.
    """
    head, comma, data = written.partition(",")
    if head.startswith("data:") and comma:
        written = data
    elif "://" in written[:64]:
        return {"media": kind, "url": written}
    try:
        content = base64.b64decode(written)
    except (binascii.Error, ValueError):
        content = encode_text(written)
    return {"media": kind, "sha256": hashlib.sha256(content).hexdigest()}


def other_part(value: Any) -> Part:
    """Return a part of an unknown kind, without the fields of LEFT_OUT."""
    if isinstance(value, Mapping):
        value = {
            key: each
            for key, each in value.items()
            if key not in LEFT_OUT and each is not None
        }
    return {"other": write_canonical(value)}


def join_texts(parts: list[Part]) -> list[Part]:
    """Join adjacent texts into one, and leave out empty ones."""
    if len(parts) == 1 and "text" in parts[0]:
        text = normalize_text(parts[0]["text"])
        return [text_part(text)] if text else []
    joined: list[Part] = []
    run: list[str] = []
    for part in [*parts, None]:
        if part is not None and "text" in part:
            run.append(part["text"])
            continue
        if run and (text := normalize_text("".join(run))):
            joined.append(text_part(text))
        run = []
        if part is not None:
            joined.append(part)
    return joined


def encode_text(text: str) -> bytes:
    """Encode as UTF-8, with lone surrogates, which JSON allows and UTF-8 does not."""
    return text.encode("utf-8", "surrogatepass")


def digest_of(role: str, parts: list[Part]) -> bytes:
    """Return the SHA-256 of a message's canonical JSON."""
    if len(parts) == 1 and len(parts[0]) == 1 and "text" in parts[0]:
        # The same JSON, in a third of the time: most messages are one text.
        text = encode_basestring(parts[0]["text"])
        written = f'{{"parts":[{{"text":{text}}}],"role":{encode_basestring(role)}}}'
    else:
        written = write_canonical({"parts": parts, "role": role})
    return hashlib.sha256(encode_text(written)).digest()
