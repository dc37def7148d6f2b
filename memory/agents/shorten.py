"""Shorter copies of messages for the model's view. The messages stay as they are."""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from memory.engine.tokens import TokenCounter

KEPT_CHARS = 20
ARGUMENT_MARK = "...(argument truncated)"
RESULT_CHARS = 500
RESULT_MARK = "\n...(the rest of this result is left out)"
# Blocks of a message's content that repeat the arguments of its tool calls.
CALL_BLOCKS = {"tool_use", "tool_call", "function_call"}


def clip_tool_args(messages: Sequence[BaseMessage], limit: int) -> list[BaseMessage]:
    """The messages, with texts over `limit` characters cut in calls of tools."""
    clipped = []
    for message in messages:
        calls = message.tool_calls if isinstance(message, AIMessage) else []
        shorter = [call | {"args": _shorten(call["args"], limit)} for call in calls]
        if shorter != calls:
            content = message.content
            if not isinstance(content, str):
                content = [
                    _shorten(block, limit)
                    if isinstance(block, dict) and block.get("type") in CALL_BLOCKS
                    else block
                    for block in content
                ]
            values = {"tool_calls": shorter, "content": content}
            message = message.model_copy(update=values)
        clipped.append(message)
    return clipped


def clip_tool_results(
    messages: Sequence[BaseMessage], excess: int, count_tokens: TokenCounter
) -> list[BaseMessage]:
    """The messages, the oldest tool results cut until `excess` tokens are saved."""
    clipped = []
    for message in messages:
        is_long = len(message.text) > RESULT_CHARS + len(RESULT_MARK)
        if excess > 0 and isinstance(message, ToolMessage) and is_long:
            content = message.text[:RESULT_CHARS] + RESULT_MARK
            shorter = message.model_copy(update={"content": content})
            excess -= count_tokens([message]) - count_tokens([shorter])
            message = shorter
        clipped.append(message)
    return clipped


def _shorten(value: Any, limit: int) -> Any:
    if isinstance(value, str) and len(value) > limit:
        return value[:KEPT_CHARS] + ARGUMENT_MARK
    if isinstance(value, Mapping):
        return {key: _shorten(each, limit) for key, each in value.items()}
    if isinstance(value, list):
        return [_shorten(each, limit) for each in value]
    return value
