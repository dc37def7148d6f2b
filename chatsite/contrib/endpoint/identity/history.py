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
from .wires.entry import Entry, Pause

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
    # Those of the instructions that are in the list of the body, and where reading it
    # can go on.
    leading: Sequence[str] = ()
    pauses: Sequence[Pause] = ()
    # SHA-256 of the canonical JSON of those that the body has.
    tools: str = ""


def read_history(wire: str, body: Mapping[str, Any]) -> History:
    """The history of a body of the wire `chat`, `messages` or `responses`. Raises
    UnreadableHistoryError."""
    reader, items = WIRES[wire].Reader(), WIRES[wire].list_items(body)
    pauses = reader.read_on(items, 0)
    entries, leading = reader.entries, []
    for entry in entries:
        if entry.role != "system":
            break
        leading.append(text_of_parts(entry.parts))
    instructions = [*WIRES[wire].list_instructions(body), *leading]
    messages = chain_entries(entries[len(leading) :], GENESIS)
    pauses = [
        each._replace(entries=each.entries - len(leading))
        for each in pauses
        # Before the first message it could still be part of the instructions.
        if each.entries > len(leading)
    ]
    tools = digest_tools(body)
    return History(messages, instructions, GENESIS, leading, pauses, tools)


def digest_tools(body: Mapping[str, Any]) -> str:
    written = write_canonical(body.get("tools") or [])
    return hashlib.sha256(encode_text(written)).hexdigest()


def read_history_on(
    wire: str, body: Mapping[str, Any], before: History, pause: Pause
) -> History:
    """The same of a body whose list begins with the items of `before` up to `pause`,
    without a look at these."""
    reader = pause.reader.copy_waiting()
    later = reader.read_on(WIRES[wire].list_items(body), pause.items)
    messages = before.messages[: pause.entries]
    pauses = [each for each in before.pauses if each.items <= pause.items]
    pauses += [each._replace(entries=each.entries + pause.entries) for each in later]
    instructions = [*WIRES[wire].list_instructions(body), *before.leading]
    messages += chain_entries(reader.entries, messages[-1].chain)
    leading, tools = before.leading, digest_tools(body)
    return History(messages, instructions, GENESIS, leading, pauses, tools)


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
