"""Read a client's body into canonical messages, each with its chain hash."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .canonical import (
    Part,
    digest_of,
    encode_text,
    write_canonical,
)
from .readers import (
    ChatReader,
    Entry,
    EntryReader,
    MessagesReader,
    Pause,
    ResponsesItemReader,
)

# Part of every hash. A change of the rule needs another version: chains of older ones
# are not found then, and their conversations continue as new ones.
VERSION = 1
GENESIS = hashlib.sha256(f"windowpane identity {VERSION}".encode()).digest()
READERS: Mapping[str, type[EntryReader]] = {
    "chat": ChatReader,
    "messages": MessagesReader,
    "responses": ResponsesItemReader,
}


class Message(NamedTuple):
    """One message of a history."""

    role: str
    parts: list[Part]
    digest: bytes
    # SHA-256 of the previous message's chain and of this digest.
    chain: bytes
    # Its span in the list of the body: [start:end].
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
    """The messages and instructions of a body."""

    messages: list[Message]
    # System and developer messages at the beginning, stored beside the chain.
    instructions: list[str]
    # The chain before the first message.
    base: bytes
    # Instructions that are in the list of the body, and points to resume reading it.
    leading: Sequence[str] = ()
    pauses: Sequence[Pause] = ()
    # SHA-256 of the canonical JSON of the body's tools.
    tools: str = ""

    @property
    def last_chain(self) -> bytes:
        return self.messages[-1].chain if self.messages else self.base


def read_history(
    wire: str, body: Mapping[str, Any], calls: Mapping[str, int] | None = None
) -> History:
    """Read the history of a body of the API `chat`, `messages` or `responses`.

    Of a body that continues after a reply, `calls` are the places of that reply's calls
    by id. Raises UnreadableHistoryError.
    """
    reader = READERS[wire]()
    reader.calls = {**(calls or {})}
    pauses = reader.read_on(reader.list_items(body), 0)
    entries, leading = reader.entries, []
    # After a reply, no system message is at the beginning.
    for entry in entries if calls is None else ():
        if entry.role != "system":
            break
        leading.append(text_of_parts(entry.parts))
    instructions = [*reader.list_instructions(body), *leading]
    messages = chain_entries(entries[len(leading) :], GENESIS)
    pauses = [
        each._replace(entries=each.entries - len(leading))
        for each in pauses
        # Before the first message, an item may still be part of the instructions.
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
    """Read a body whose list begins with the items of `before` up to `pause`.

    Those items are not read again. Raises UnreadableHistoryError.
    """
    reader = pause.reader.copy_waiting()
    later = reader.read_on(reader.list_items(body), pause.items)
    messages = before.messages[: pause.entries]
    pauses = [each for each in before.pauses if each.items <= pause.items]
    pauses += [each._replace(entries=each.entries + pause.entries) for each in later]
    instructions = [*reader.list_instructions(body), *before.leading]
    messages += chain_entries(reader.entries, messages[-1].chain)
    leading, tools = before.leading, digest_tools(body)
    return History(messages, instructions, GENESIS, leading, pauses, tools)


def go_on_from(history: History, base: bytes) -> History:
    """Return the history after other messages, which the body lacks."""
    messages = chain_entries([each.entry for each in history.messages], base)
    return history._replace(messages=messages, base=base)


def read_reply(wire: str, reply: Mapping[str, Any], base: bytes) -> list[Message]:
    """Return the message that a served reply adds to the chain, or an empty list.

    The reply is the `message` of a choice in `chat`, the message in `messages`, the
    response in `responses`.
    """
    return chain_entries(READERS[wire]().list_reply(reply), base)


def chain_entries(entries: Sequence[Entry], base: bytes) -> list[Message]:
    made = []
    for role, parts, start, end in entries:
        digest = digest_of(role, parts)
        base = hashlib.sha256(base + digest).digest()
        made.append(Message(role, parts, digest, base, start, end))
    return made


def text_of_parts(parts: Sequence[Part]) -> str:
    """Return the text by which messages that are not equal are compared."""
    if len(parts) == 1 and "text" in parts[0]:
        return parts[0]["text"]
    return "\n".join(map(_text_of_part, parts))


def _text_of_part(part: Part) -> str:
    if "text" in part:
        return part["text"]
    return text_of_parts(part["parts"]) if "parts" in part else write_canonical(part)
