"""Rows of the transcript as LangChain messages. Only role and text go over; LangChain
objects themselves are never stored.
"""

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from .models import Message


def to_langchain(row: Message) -> BaseMessage:
    """`id` is the message's number; `created_at` serves the age and idle triggers."""
    common = {
        "content": row.text,
        "id": str(row.seq),
        "additional_kwargs": {"created_at": row.created_at},
    }
    if row.role == Message.Role.USER:
        return HumanMessage(**common)
    if row.role == Message.Role.TOOL:
        return ToolMessage(tool_call_id=row.tool_call_id, **common)
    return AIMessage(tool_calls=row.tool_calls, **common)
