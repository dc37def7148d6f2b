"""Any other chat model of LangChain, behind the interface of the site's own.

It is asked with what an OpenAI-compatible server would get, and read as one's answer.
"""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from importlib import import_module
from typing import Any

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata, add_usage
from langchain_core.messages.tool import ToolCallChunk, tool_call_chunk
from langchain_core.runnables import Runnable

from memory.engine.compose import dump_body, to_wire
from memory.engine.tools.call_forms import SENT_EXTRAS

from ..deltas import NoteBody
from ..provider_file import ModelProvider

# Providers' words for OpenAI's reasons, in lower case.
REASONS = {
    **dict.fromkeys(("end_turn", "stop_sequence"), "stop"),
    **dict.fromkeys(("max_tokens", "model_context_window_exceeded"), "length"),
    **dict.fromkeys(("refusal", "safety", "prohibited_content"), "content_filter"),
    "tool_use": "tool_calls",
}
REASON_NAMES = ("finish_reason", "stop_reason", "done_reason")
# Blocks of reasoning, by the name of the text in each.
THINKING = {"thinking": "thinking", "reasoning": "reasoning"}
SEALED = "redacted_thinking"


class ModelSetupError(LookupError):
    """A model that LangChain can't make, and why, in a sentence without secrets."""


class LangChainChat:
    """A chat model of LangChain's packages, or of a factory, under the site's name."""

    def __init__(self, name: str, model: BaseChatModel) -> None:
        self.name = name
        self.profile = model.profile
        self._model = model
        fields = type(model).model_fields.items()
        self._options = {field.alias or each: each for each, field in fields}
        self._options |= {each: each for each, _field in fields}

    def make_body(
        self, messages: Sequence[BaseMessage], **options: Any
    ) -> dict[str, Any]:
        """Return what LangChain is given, as an OpenAI-compatible server gets it."""
        known = {*self._options, "tools", "tool_choice"}
        taken = {name: options[name] for name in options.keys() & known}
        wire = to_wire(messages, model=self.name)
        return {"model": self.name, "messages": wire, "stream": True, **taken}

    async def astream(
        self,
        messages: Sequence[BaseMessage],
        *,
        on_body: NoteBody | None = None,
        **options: Any,
    ) -> AsyncIterator[AIMessageChunk]:
        """Yield the chunks of a reply, with the sum of the counts of tokens so far."""
        if on_body:
            body = self.make_body(messages, **options)
            on_body(body, dump_body(body))
        usage = None
        stream = self._bind(options).astream([*map(_restore_thinking, messages)])
        async with aclosing(stream) as chunks:
            async for chunk in chunks:
                if counts := chunk.usage_metadata:
                    usage = add_usage(usage, counts)
                yield _convert_chunk(chunk, usage if counts else None)

    def _bind(self, options: dict[str, Any]) -> Runnable[LanguageModelInput, AIMessage]:
        """Return the model with these options, as far as its class has such fields."""
        taken = {n: options[n] for n in options.keys() & self._options.keys()}
        values = {self._options[name]: value for name, value in taken.items()}
        model = self._model.model_copy(update=values) if values else self._model
        if not (tools := options.get("tools")):
            return model
        choice = options.get("tool_choice")
        # langchain-anthropic takes the word for the name of a tool.
        if choice == "none" and model._llm_type.startswith("anthropic"):
            choice = {"type": "none"}
        return model.bind_tools(tools, **({"tool_choice": choice} if choice else {}))


def _restore_thinking(message: BaseMessage) -> BaseMessage:
    """Return a call of tools with the signed reasoning that it came with."""
    sent = message.additional_kwargs.get(SENT_EXTRAS, {}).get("message", {})
    blocks: list[str | dict[str, Any]] = []
    for each in sent.get("reasoning_details", ()):
        if each.get("type") in THINKING and each.get("signature"):
            block = {"type": each["type"], "signature": each["signature"]}
            blocks.append(block | {THINKING[each["type"]]: each.get("text", "")})
        elif each.get("type") == SEALED:
            blocks.append({"type": SEALED, "data": each.get("data", "")})
    if not blocks:
        return message
    texts = [{"type": "text", "text": message.text}] if message.text else []
    return message.model_copy(update={"content": [*blocks, *texts]})


def _convert_chunk(chunk: AIMessage, usage: UsageMetadata | None) -> AIMessageChunk:
    found: dict[str, Any] = {}
    parts = chunk.content if isinstance(chunk.content, list) else ()
    thoughts = [part for part in parts if isinstance(part, dict)]
    thoughts = [part for part in thoughts if part.get("type") in {*THINKING, SEALED}]
    texts = [str(part.get(part["type"]) or "") for part in thoughts]
    told = chunk.additional_kwargs.get("reasoning_content")
    found["reasoning"] = "".join(texts) or (told if isinstance(told, str) else "")
    if thoughts:
        details = map(_describe_thought, thoughts, texts)
        found["extras"] = {"reasoning_details": [*details]}
    ends = (chunk.response_metadata.get(name) for name in REASON_NAMES)
    reason = str(next(filter(None, ends), ""))
    return AIMessageChunk(
        str(chunk.text),
        additional_kwargs=found,
        response_metadata={"finish_reason": REASONS.get(reason.lower(), reason.lower())}
        if reason
        else {},
        usage_metadata=usage,
        tool_call_chunks=_list_calls(chunk),
    )


def _describe_thought(part: dict[str, Any], text: str) -> dict[str, Any]:
    """Return it as an entry of a provider's own: its text comes in pieces."""
    kept = {n: part[n] for n in ("type", "index", "signature", "data") if part.get(n)}
    return kept | ({} if part["type"] == SEALED else {"text": text})


def _list_calls(chunk: AIMessage) -> list[ToolCallChunk]:
    if isinstance(chunk, AIMessageChunk):
        return chunk.tool_call_chunks
    # A model that does not stream gives the whole message at once.
    return [
        tool_call_chunk(
            id=call["id"],
            name=call["name"],
            args=json.dumps(call["args"]),
            index=index,
        )
        for index, call in enumerate(chunk.tool_calls)
    ]


def make_langchain_chat(
    name: str, provider: ModelProvider, asked: str
) -> LangChainChat:
    """Make the model that the file of providers calls `asked`.

    Raises ModelSetupError.
    """
    told = {
        "api_key": provider.secret,
        "base_url": provider.base_url,
        "default_headers": provider.headers,
        "api_version": provider.api_version,
    }
    told = {option: value for option, value in told.items() if value}
    where, _colon, what = asked.partition(":")
    try:
        if "." in where:
            made = getattr(import_module(where), what)(name, **told)
        else:
            # Not at the top: it takes a second that other sites can save.
            from langchain.chat_models import init_chat_model

            # ReplyStream counts its own attempts.
            made = init_chat_model(what, model_provider=where, max_retries=0, **told)
        if not isinstance(made, BaseChatModel):
            raise TypeError("it is no chat model of LangChain")
    except Exception as error:  # noqa: BLE001
        # Whatever a package or a factory raises; the rest of its text can have the key.
        text = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        text = text.replace(provider.secret, "…") if provider.secret else text
        raise ModelSetupError(
            f"The model {name!r} can't be made from {asked!r}: {text}."
        ) from None
    return LangChainChat(name, made)
