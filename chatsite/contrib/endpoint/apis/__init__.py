"""The APIs that clients use, each in a module.

Each has its errors, the fields of a request, and the parser of a reply. Nothing here
reads the database.
"""

from .anthropic_messages import AnthropicMessages
from .api import Api
from .openai_chat import ChatCompletions
from .openai_responses import OpenAICompaction, OpenAIResponses

OPENAI_CHAT, ANTHROPIC_MESSAGES = ChatCompletions(), AnthropicMessages()
OPENAI_COMPACT, OPENAI_RESPONSES = OpenAICompaction(), OpenAIResponses()
# Compaction comes first, as its path also looks like that of a stored response.
APIS = (OPENAI_CHAT, ANTHROPIC_MESSAGES, OPENAI_COMPACT, OPENAI_RESPONSES)


def find_api_by_name(name: str) -> Api:
    return next(api for api in APIS if api.name == name)
