"""Any other chat model of LangChain, behind the interface of the site's own.

It is asked with what an OpenAI-compatible server would get, and read as one's answer.
"""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from importlib import import_module
from typing import Any

from langchain_core.exceptions import ContextOverflowError
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata, add_usage
from langchain_core.messages.tool import ToolCallChunk, tool_call_chunk
from langchain_core.runnables import Runnable

from memory.engine.compose import dump_body, to_wire
from memory.engine.tools.call_forms import SENT_EXTRAS, SIGNATURE

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
SEALED, THINKS = "redacted_thinking", "reasoning"
# Google's signatures of calls, by the ids of the calls, as its package keeps them.
CALL_SIGNATURES = "__gemini_function_call_thought_signatures__"


class ModelAPIError(Exception):
    """An error of a provider's API, with the attributes of OpenAI's errors."""

    def __init__(self, status_code: int, body: object, response: object) -> None:
        self.status_code, self.body, self.response = status_code, body, response
        # Never its text, which can repeat the key.
        super().__init__(f"status {status_code}")


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
        if "num_predict" in self._options:
            # Ollama's cap, and its switch of reasoning.
            self._options |= {"max_tokens": "num_predict", "reasoning_effort": THINKS}

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
        usage, has_calls = None, False
        stream = self._bind(options).astream([*map(_restore_extras, messages)])
        try:
            async with aclosing(stream) as chunks:
                async for chunk in chunks:
                    if counts := chunk.usage_metadata:
                        usage = add_usage(usage, counts)
                    converted = _convert_chunk(chunk, usage if counts else None)
                    has_calls |= bool(converted.additional_kwargs["calls"])
                    ended = converted.response_metadata
                    # Google and Ollama end calls of tools as they end an answer.
                    if has_calls and ended.get("finish_reason") == "stop":
                        ended["finish_reason"] = "tool_calls"
                    yield converted
        except Exception as error:
            if found := _find_api_error(error):
                raise found from error
            raise

    def _bind(self, options: dict[str, Any]) -> Runnable[LanguageModelInput, AIMessage]:
        """Return the model with these options, as far as its class has such fields."""
        taken = {n: options[n] for n in options.keys() & self._options.keys()}
        values = {self._options[name]: value for name, value in taken.items()}
        if THINKS in values:
            values[THINKS] = values[THINKS] not in ("none", False)
        model = self._model.model_copy(update=values) if values else self._model
        if not (tools := options.get("tools")):
            return model
        choice = options.get("tool_choice")
        # langchain-anthropic takes the word for the name of a tool.
        if choice == "none" and model._llm_type.startswith("anthropic"):
            choice = {"type": "none"}
        return model.bind_tools(tools, **({"tool_choice": choice} if choice else {}))


def _find_api_error(error: Exception) -> ModelAPIError | None:
    """Return the error in the form of OpenAI's; None if it needs no other form."""
    if hasattr(error, "body") or isinstance(error, ContextOverflowError):
        return None
    # Google's package wraps the error that has the status.
    for each in (error.__cause__, error):
        told = (getattr(each, name, None) for name in ("status_code", "code"))
        status = next((value for value in told if isinstance(value, int)), 0)
        if status >= 400:
            body = getattr(each, "details", None) or getattr(each, "error", None)
            return ModelAPIError(status, body, getattr(each, "response", None))
    return None


def _restore_extras(message: BaseMessage) -> BaseMessage:
    """Return a call of tools with the signatures and the reasoning it came with."""
    sent = message.additional_kwargs.get(SENT_EXTRAS, {})
    signatures = {
        call_id: signature
        for call_id, extra in sent.get("calls", {}).items()
        if (signature := _read_signature(extra))
    }
    if signatures:
        kept = {**message.additional_kwargs, CALL_SIGNATURES: signatures}
        message = message.model_copy(update={"additional_kwargs": kept})
    return _restore_thinking(message, sent.get("message", {}))


def _read_signature(extra: dict[str, Any]) -> str:
    found = extra.get("extra_content", {}).get("google", {}).get("thought_signature")
    # The package has a stand-in of its own.
    return found if found != SIGNATURE["google"]["thought_signature"] else ""


def _restore_thinking(message: BaseMessage, sent: dict[str, Any]) -> BaseMessage:
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
    calls = _list_calls(chunk)
    signatures = chunk.additional_kwargs.get(CALL_SIGNATURES, {})
    for call in calls:
        if signature := signatures.get(call["id"]):
            google = {"google": {"thought_signature": signature}}
            call["extras"] = {"extra_content": google}
    # Where the stream's reader looks first: a chunk keeps no extras of its calls.
    found["calls"] = calls
    return AIMessageChunk(
        str(chunk.text),
        additional_kwargs=found,
        response_metadata={"finish_reason": REASONS.get(reason.lower(), reason.lower())}
        if reason
        else {},
        usage_metadata=usage,
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
            id=call["id"], name=call["name"], args=json.dumps(call["args"]), index=index
        )
        for index, call in enumerate(chunk.tool_calls)
    ]


def _name_options(where: str, told: dict[str, Any]) -> dict[str, Any]:
    """Return the options that this package of LangChain knows by other names."""
    headers = told.get("default_headers", {})
    if where == "google_genai":
        # For its SDK, 0 means its own number of attempts.
        return {"max_retries": 1, "additional_headers": headers}
    if where == "ollama":
        key = told.get("api_key")
        key = {"Authorization": f"Bearer {key}"} if key else {}
        return {"client_kwargs": {"headers": {**key, **headers}}}
    # ReplyStream counts its own attempts.
    return {} if "." in where else {"max_retries": 0}


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
    told |= _name_options(where, told)
    try:
        if "." in where:
            made = getattr(import_module(where), what)(name, **told)
        else:
            # Not at the top: it takes a second that other sites can save.
            from langchain.chat_models import init_chat_model

            made = init_chat_model(what, model_provider=where, **told)
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
