"""The APIs that clients use, each in a module.

Each has its errors, the fields of a request, and the parser of a reply. Nothing here
reads the database.
"""

from .anthropic_messages import API as ANTHROPIC_MESSAGES
from .api import Api
from .openai_chat import API as OPENAI_CHAT
from .openai_responses import API as OPENAI_RESPONSES
from .openai_responses import COMPACT_API as OPENAI_COMPACT

# Compaction comes first, as its path also looks like that of a stored response.
APIS = (OPENAI_CHAT, ANTHROPIC_MESSAGES, OPENAI_COMPACT, OPENAI_RESPONSES)


def find_api_by_name(name: str) -> Api:
    return next(api for api in APIS if api.name == name)
