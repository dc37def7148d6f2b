"""The APIs that clients use, each in a module.

Each has its errors, the fields of a request, and the parser of a reply. Nothing here
reads the database.
"""

from .anthropic_messages import WIRE as ANTHROPIC_MESSAGES
from .openai_chat import WIRE as OPENAI_CHAT
from .openai_responses import COMPACT_WIRE as OPENAI_COMPACT
from .openai_responses import WIRE as OPENAI_RESPONSES
from .wire import Wire

# Compaction comes first, as its path also looks like that of a stored response.
WIRES = (OPENAI_CHAT, ANTHROPIC_MESSAGES, OPENAI_COMPACT, OPENAI_RESPONSES)


def find_wire_by_name(name: str) -> Wire:
    return next(wire for wire in WIRES if wire.name == name)
