"""A client's body as canonical messages, each with the hash of all up to it."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .canonical import (
    Part,
    UnreadableHistoryError,
    digest_of,
    encode_text,
    write_canonical,
)
from .wires import chat, messages, responses
from .wires.entry import Entry

# Part of every hash. A change of the rule is another version: what was kept under an
# older one is then not found by its chain, and goes on as a new conversation.
VERSION = 1
GENESIS = hashlib.sha256(f"windowpane identity {VERSION}".encode()).digest()
WIRES = {"chat": chat, "messages": messages, "responses": responses}


class Message(NamedTuple):
    """One message of a history."""

    role: str
    parts: list[Part]
    digest: bytes
    # SHA-256 of the chain up to the message before, and of this digest.
    chain: bytes
    # Where it is in the list of the body: [start:end].
    start: int
    end: int

    @property
    def text(self) -> str:
        return text_of_parts(self.parts)

    @property
    def entry(self) -> Entry:
        return Entry(self.role, self.parts, self.start, self.end)

    @property
    def span(self) -> range:
        return range(self.start, self.end)


class History(NamedTuple):
    """A body, read."""

    messages: list[Message]
    # Leading system and developer messages: versions of them are kept beside the chain.
    instructions: list[str]
    # The chain before the first message.
    base: bytes

    @property
    def instructions_digest(self) -> bytes:
        return hashlib.sha256(encode_text(write_canonical(self.instructions))).digest()


def read_history(wire: str, body: Mapping[str, Any], base: bytes = GENESIS) -> History:
    """The history of a body of the wire `chat`, `messages` or `responses`.

    `base` is the chain that the history goes on from, where the body has only what is
    new (`previous_response_id`). Raises UnreadableHistoryError.
    """
    entries = WIRES[wire].list_entries(body)
    instructions = WIRES[wire].list_instructions(body)
    leading = 0
    while leading < len(entries) and entries[leading].role == "system":
        instructions.append(text_of_parts(entries[leading].parts))
        leading += 1
    return History(chain_entries(entries[leading:], base), instructions, base)


def go_on_from(history: History, base: bytes) -> History:
    """The same messages after others that the body has not."""
    messages = chain_entries([each.entry for each in history.messages], base)
    return history._replace(messages=messages, base=base)


def read_reply(wire: str, reply: Mapping[str, Any], base: bytes) -> list[Message]:
    """What a served reply adds to the chain: the `message` of a choice of `chat`, the
    message of `messages`, the response of `responses`. It is one message, or none."""
    return chain_entries(WIRES[wire].list_reply(reply), base)


def chain_entries(entries: Sequence[Entry], base: bytes) -> list[Message]:
    made = []
    for role, parts, start, end in entries:
        digest = digest_of(role, parts)
        base = hashlib.sha256(base + digest).digest()
        made.append(Message(role, parts, digest, base, start, end))
    return made


def text_of_parts(parts: Sequence[Part]) -> str:
    """What is compared where two messages are alike, but not the same."""
    if len(parts) == 1 and "text" in parts[0]:
        return parts[0]["text"]
    return "\n".join(map(_text_of_part, parts))


def _text_of_part(part: Part) -> str:
    if "text" in part:
        return part["text"]
    return text_of_parts(part["parts"]) if "parts" in part else write_canonical(part)


__all__ = ["GENESIS", "VERSION", "History", "Message", "UnreadableHistoryError"]
