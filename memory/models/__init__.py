"""The tables of the thread state: conversations, messages, summaries, model calls.

Nothing here knows a web page. Rows are written by transcript.py, compaction/ and
context.py; the constraints hold for every writer.
"""

from .agent_thread import AgentThread
from .call import ModelCall, Prompt
from .change import Change
from .conversation import Conversation, validate_policy
from .message import (
    SENT,
    Message,
    RecallEntry,
    as_langchain,
    read_langchain,
    replace_columns,
)
from .private_row import PrivateRow
from .summary import Summary

__all__ = [
    "SENT",
    "AgentThread",
    "Change",
    "Conversation",
    "Message",
    "ModelCall",
    "PrivateRow",
    "Prompt",
    "RecallEntry",
    "Summary",
    "as_langchain",
    "read_langchain",
    "replace_columns",
    "validate_policy",
]
