"""OpenAI's Chat Completions API, which most clients and servers use."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from time import time
from typing import Any
from urllib.parse import urlencode

from django.conf import settings

from chatsite.llm import providers
from chatsite.llm.gathered import read_calls
from chatsite.llm.provider_file import OPENAI_ADDRESS

from .api import Api, Body, wants_stream
from .errors import ApiError, refuse_model
from .reply_reader import ReplyReader
from .rows import (
    ASSISTANT,
    TOOL,
    USER,
    TranscriptRow,
    make_call_values,
    make_row,
    read_part_texts,
)

# OpenAI's error types, by status.
TYPES = {
    401: "authentication_error",
    403: "permission_error",
    429: "rate_limit_error",
    500: "server_error",
    502: "server_error",
    503: "server_error",
}


class OpenAIApi(Api):
    """The provider and the form of errors of both OpenAI APIs."""

    system_roles = ("system", "developer")

    def find_upstream(self, model: str) -> tuple[str, dict[str, str]] | None:
        provider = providers.read_short_form()
        if settings.PROVIDERS:
            provider = providers.find_provider(model)
        # A model that LangChain makes has another API.
        if provider is None or provider.langchain_name:
            raise refuse_model(model)
        key, url = provider.secret, provider.base_url
        if not key and not url:
            return None
        headers = {"authorization": f"Bearer {key}"} if key else {}
        query = f"?{urlencode(provider.sent_query)}".rstrip("?")
        return f"{url or OPENAI_ADDRESS}{query}", {**headers, **provider.sent_headers}

    def name_upstream(self, model: str) -> str:
        return providers.name_provider(model if settings.PROVIDERS else "")

    def write_error(self, error: ApiError) -> bytes:
        kind = TYPES.get(error.status, "invalid_request_error")
        values = {"message": error.detail, "type": kind, "param": error.param}
        values["code"] = error.code
        return json.dumps({"error": values}, ensure_ascii=False).encode()


class OpenAIReader(ReplyReader):
    """A parser of the first choice of a reply; others are not read."""

    def read_object(self, value: dict[str, Any]) -> None:
        self.read_usage(value.get("usage"), "prompt_tokens", "completion_tokens")
        for choice in value.get("choices") or ():
            if isinstance(choice, dict):
                self._read_choice(choice)

    def _read_choice(self, choice: dict[str, Any]) -> None:
        is_whole = "message" in choice
        delta = choice.get("message") if is_whole else choice.get("delta")
        if not isinstance(delta, dict):
            delta = {}
        if choice.get("index"):
            return
        self.add_text(read_part_texts(delta.get("content") or delta.get("refusal")))
        reasoning = delta.get("reasoning_content") or delta.get("reasoning")
        self.add_reasoning(reasoning)
        for call in read_calls(delta.get("tool_calls"), is_whole=is_whole):
            self.calls.add(call)
        if isinstance(reason := choice.get("finish_reason"), str):
            self.finish_reason = reason

    def to_message(self) -> dict[str, Any]:
        """Return the reply as a client sends it back."""
        calls = [
            {
                "id": each["id"],
                "type": "function",
                "function": {"name": each["name"], "arguments": each["args"]},
            }
            for each in self.calls.to_chunks()
        ]
        message: dict[str, Any] = {"role": "assistant", "content": self.text or None}
        return {**message, "tool_calls": calls} if calls else message


class ChatCompletions(OpenAIApi):
    name = "chat"
    paths = {"/v1/chat/completions": "POST", "/v1/models": "GET"}
    upstream_path = "/chat/completions"
    reader = OpenAIReader

    def make_rows(self, sent: Sequence[Mapping[str, Any]]) -> list[TranscriptRow]:
        message = sent[0]
        role = message.get("role")
        text = read_part_texts(message.get("content"))
        if role == "assistant":
            text = text or read_part_texts(message.get("refusal"))
            calls = make_call_values(
                read_calls(message.get("tool_calls"), is_whole=True)
            )
            return [make_row(ASSISTANT, text, tool_calls=calls)]
        if role in ("tool", "function"):
            call_id = str(message.get("tool_call_id") or "")[:100]
            return [make_row(TOOL, text, tool_call_id=call_id)]
        return [make_row(USER, text)]

    async def write_reply(
        self, body: Body, model: str, pieces: AsyncIterator[str]
    ) -> AsyncIterator[bytes]:
        common = {"id": "chatcmpl-demo", "created": int(time()), "model": model}
        if not wants_stream(body):
            text = "".join([piece async for piece in pieces])
            message = {"role": "assistant", "content": text}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            whole = {**common, "object": "chat.completion", "choices": [choice]}
            yield json.dumps(whole, ensure_ascii=False).encode()
            return

        def write(delta: dict[str, Any], reason: str | None = None) -> bytes:
            choice = {"index": 0, "delta": delta, "finish_reason": reason}
            chunk = {**common, "object": "chat.completion.chunk", "choices": [choice]}
            return f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n".encode()

        yield write({"role": "assistant", "content": ""})
        async for piece in pieces:
            yield write({"content": piece})
        yield write({}, "stop")
        yield b"data: [DONE]\n\n"
