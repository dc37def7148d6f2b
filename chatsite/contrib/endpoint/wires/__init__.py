"""The wires that clients speak, each in a module of its own: its errors, what a request
asks for, and how a reply is read. Nothing here knows the database."""

from .anthropic_messages import WIRE as ANTHROPIC_MESSAGES
from .openai_chat import WIRE as OPENAI_CHAT
from .openai_responses import COMPACT_WIRE as OPENAI_COMPACT
from .openai_responses import WIRE as OPENAI_RESPONSES
from .wire import Wire

# That of compaction comes before that of ids, which its path could be one of.
WIRES = (OPENAI_CHAT, ANTHROPIC_MESSAGES, OPENAI_COMPACT, OPENAI_RESPONSES)


def find_wire_by_name(name: str) -> Wire:
    return next(wire for wire in WIRES if wire.name == name)
