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
    return [_clip_calls(message, limit) for message in messages]


def clip_tool_results(
    messages: Sequence[BaseMessage], excess: int, count_tokens: TokenCounter
) -> list[BaseMessage]:
    """The messages, the oldest tool results cut until `excess` tokens are saved."""
    clipped = list(messages)
    for index, message in enumerate(messages):
        if excess > 0 and isinstance(message, ToolMessage):
            clipped[index] = shorter = _clip_result(message)
            excess -= count_tokens([message]) - count_tokens([shorter])
    return clipped


def _clip_calls(message: BaseMessage, limit: int) -> BaseMessage:
    if not isinstance(message, AIMessage) or not message.tool_calls:
        return message
    calls = [
        call | {"args": _shorten(call["args"], limit)} for call in message.tool_calls
    ]
    if calls == message.tool_calls:
        return message
    content = message.content
    if not isinstance(content, str):
        content = [_clip_block(block, limit) for block in content]
    return message.model_copy(update={"tool_calls": calls, "content": content})


def _clip_block(block: Any, limit: int) -> Any:
    is_call = isinstance(block, dict) and block.get("type") in CALL_BLOCKS
    return _shorten(block, limit) if is_call else block


def _shorten(value: Any, limit: int) -> Any:
    if isinstance(value, str) and len(value) > limit:
        return value[:KEPT_CHARS] + ARGUMENT_MARK
    if isinstance(value, Mapping):
        return {key: _shorten(each, limit) for key, each in value.items()}
    if isinstance(value, list):
        return [_shorten(each, limit) for each in value]
    return value


def _clip_result(message: BaseMessage) -> BaseMessage:
    text = message.text
    if len(text) <= RESULT_CHARS + len(RESULT_MARK):
        return message
    return message.model_copy(update={"content": text[:RESULT_CHARS] + RESULT_MARK})
