"""DemoChatModel: a chat model without a provider.

It answers only from the messages it was sent and summarises by keeping sentences, so
that everything the site does can be seen, and tested, without a key.
"""

import asyncio
import json
import re
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool

from memory.engine.compose import dump_body, dump_wire, to_wire
from memory.engine.summaries.material import read_request
from memory.engine.summaries.prompts import MARKER as SUMMARY_MARK
from memory.engine.summaries.schemas import is_chinese, render_summary
from memory.engine.tokens import MESSAGE_OVERHEAD, count_text, count_tokens
from memory.engine.tools.shorten import map_strings

from ..naming import TITLE_MARK
from .answers import answer_messages, list_image_urls
from .extractive import make_title, name_in_chinese, summarize_extractively
from .structured import fill_shape, find_shape
from .tool_use import answer_from_results, find_calls

DEMO = "demo"
DEFAULT_SUMMARY_TOKENS = 400
# It looks at none.
IMAGE_TOKENS = 85
FORM_SHARES = (0.9, 0.7, 0.4)
PIECE = re.compile(r"\s*(?:[\w'’-]{1,12}|\W)\s*?", re.ASCII)


class DemoChatModel(BaseChatModel):
    """A deterministic model: same messages, same reply, but for the ids of calls."""

    # 0: everything at once.
    tokens_per_second: float = 0.0

    @property
    def _llm_type(self) -> str:
        return "demo"

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: str | None = None, **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        return self.bind(tools=[convert_to_openai_tool(each) for each in tools])

    def make_body(self, messages: list[BaseMessage], **options: Any) -> dict[str, Any]:
        """Return what a server would receive; the model gets it without one."""
        wire = to_wire(messages, model=DEMO)
        return {"model": DEMO, "messages": wire, "stream": True, **options}

    def _generate(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> ChatResult:
        tools = kwargs.get("tools") or ()
        calls, text = _compose_reply(messages, tools)
        metadata = _make_metadata(messages, tools, text, calls)
        message = AIMessage(text, tool_calls=calls, **metadata)
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _astream(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        if on_body := kwargs.pop("on_body", None):
            body = self.make_body(messages, **kwargs)
            on_body(body, dump_body(body))
        # A long conversation takes a while to read; other replies go on meanwhile.
        tools = kwargs.get("tools") or ()
        calls, text = await asyncio.to_thread(_compose_reply, messages, tools)
        pause = 1 / self.tokens_per_second if self.tokens_per_second > 0 else 0.0
        for piece in split_tokens(text):
            await asyncio.sleep(pause)
            yield ChatGenerationChunk(message=AIMessageChunk(piece))
        for index, call in enumerate(calls):
            written = {**call, "args": json.dumps(call["args"], ensure_ascii=False)}
            piece = tool_call_chunk(**written, index=index)
            yield ChatGenerationChunk(
                message=AIMessageChunk("", tool_call_chunks=[piece])
            )
        last = AIMessageChunk("", **_make_metadata(messages, tools, text, calls))
        yield ChatGenerationChunk(message=last)


def _compose_reply(
    messages: Sequence[BaseMessage], tools: Sequence[dict[str, Any]]
) -> tuple[list[dict[str, Any]], str]:
    """Return the calls of tools that the reply consists of, or its text."""
    calls = []
    if tools and not messages[0].text.startswith((SUMMARY_MARK, TITLE_MARK)):
        calls = [
            {"name": name, "args": arguments, "id": f"call_{uuid.uuid4().hex}"}
            for name, arguments in find_calls(messages, tools)
        ]
    return calls, "" if calls else reply_to(messages, tools)


def reply_to(
    messages: Sequence[BaseMessage], tools: Sequence[dict[str, Any]] = ()
) -> str:
    """Return the summary or title that the system message wants, else an answer."""
    if messages and (document := read_request(messages)) is not None:
        is_in_place = messages[-1].text.startswith(SUMMARY_MARK)
        prompt = messages[-1 if is_in_place else 0].text
        return _answer_summary_request(prompt, document)
    if messages and messages[0].text.startswith(TITLE_MARK):
        return make_title(str(json.loads(messages[-1].text)["messages"][0]["text"]))
    return answer_from_results(messages) or answer_messages(messages, tools)


def split_tokens(text: str) -> list[str]:
    """Cut the text into pieces about the size of a model's tokens."""
    return PIECE.findall(text)


def _answer_summary_request(prompt: str, data: dict[str, Any]) -> str:
    """Summarise the material of a summariser's request, in the form that it wants."""
    previous = [str(data.get("previous_summary") or "")]
    previous += [str(each.get("text", "")) for each in data.get("summaries", [])]
    texts = list(_quote_messages(data.get("messages", [])))
    room = int(data.get("max_tokens") or DEFAULT_SUMMARY_TOKENS)
    shape = find_shape(prompt)
    summarize = partial(summarize_extractively, texts, previous=previous)
    # Headings and topics need room as well.
    for share in FORM_SHARES if shape else ():
        text = summarize(max_tokens=int(room * share))
        lines = text.encode("utf-8", "replace").decode().splitlines()
        with suppress(LookupError):
            filled = fill_shape(shape, lines)
            if is_chinese(text):
                filled = map_strings(filled, name_in_chinese)
            if count_text(render_summary(filled)) + MESSAGE_OVERHEAD <= room:
                return json.dumps(filled, ensure_ascii=False)
    text = summarize(max_tokens=room)
    return name_in_chinese(text) if is_chinese(text) else text


def _quote_messages(messages: list[dict[str, Any]]) -> Iterator[str]:
    """Yield "User: …" for each message, with the date wherever a new day begins."""
    last_day = ""
    for message in messages:
        day = str(message.get("date") or "")[:10]
        mark = f" ({day})" if day and day != last_day else ""
        last_day = day or last_day
        role = str(message.get("role", "user")).capitalize()
        yield f"{role}{mark}: {message.get('text', '')}"


def _make_metadata(
    messages: Sequence[BaseMessage],
    tools: Sequence[dict[str, Any]],
    text: str,
    calls: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    read = count_tokens(messages)
    read += IMAGE_TOKENS * sum(len(list_image_urls(message)) for message in messages)
    read += count_text(dump_wire(tools)) if tools else 0
    written = count_text(text) + sum(count_text(str(each)) for each in calls)
    usage = UsageMetadata(
        input_tokens=read, output_tokens=written, total_tokens=read + written
    )
    reason = "tool_calls" if calls else "stop"
    end = {"finish_reason": reason, "model_name": "demo"}
    return {"usage_metadata": usage, "response_metadata": end}
