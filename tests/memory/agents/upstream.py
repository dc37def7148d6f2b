"""An OpenAI-compatible provider for tests of agents that reads requests strictly."""

import json

import httpx
from langchain_core.exceptions import ContextOverflowError
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import convert_to_messages
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_openai import ChatOpenAI

from memory.engine.compose import to_wire
from memory.engine.tokens import count_text
from tests.fakes.openai_rules import find_violations


def count_body(body):
    """The tokens of a request as the engine estimates them, of the body itself."""
    tokens = count_text(json.dumps(body["tools"])) if body.get("tools") else 0
    for message in body["messages"]:
        content = message.get("content") or ""
        if not isinstance(content, str):
            content = "".join(part.get("text", "") for part in content)
        tokens += 4 + count_text(content)
        for call in message.get("tool_calls") or []:
            function = call["function"]
            tokens += count_text(function["name"] + function["arguments"])
    return tokens


class Upstream:
    """Answers with what `reply(number)` gives: a text, or a list of (name, args)."""

    def __init__(self, reply, *, window=None, told=None):
        self.reply = reply
        # The window it has, and the one that the agent knows.
        self.window = window
        self.told = told
        self.bodies = []
        self.answers = 0

    @property
    def profile(self):
        return {"max_input_tokens": self.told} if self.told else None

    def model(self):
        """A model that makes the same bodies as the real client, in less time."""
        return LightModel(upstream=self, profile=self.profile)

    def client(self):
        """The real one."""
        transport = httpx.MockTransport(self._serve)
        return ChatOpenAI(
            model="test",
            api_key="none",
            base_url="http://upstream/v1",
            http_client=httpx.Client(transport=transport),
            http_async_client=httpx.AsyncClient(transport=transport),
            profile=self.profile,
            max_retries=0,
        )

    @property
    def faults(self):
        """Return the requests that OpenAI would have refused."""
        return [fault for body in self.bodies for fault in find_violations(body)]

    @property
    def sizes(self):
        return [count_body(body) for body in self.bodies]

    def answer(self, body):
        """The message for a request; None: it is too long."""
        self.bodies.append(body)
        if self.window and count_body(body) > self.window:
            return None
        self.answers += 1
        reply = self.reply(self.answers)
        if isinstance(reply, str):
            return {"role": "assistant", "content": reply}
        calls = [
            {
                "id": f"call_{self.answers}_{n}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(args)},
            }
            for n, (name, args) in enumerate(reply)
        ]
        return {"role": "assistant", "content": None, "tool_calls": calls}

    def _serve(self, request):
        message = self.answer(json.loads(request.content))
        if message is None:
            error = {"message": "too long", "code": "context_length_exceeded"}
            return httpx.Response(400, json={"error": error})
        reason = "tool_calls" if "tool_calls" in message else "stop"
        choice = {"index": 0, "message": message, "finish_reason": reason}
        made = {"id": "1", "object": "chat.completion", "created": 1, "model": "test"}
        return httpx.Response(200, json=made | {"choices": [choice]})


class LightModel(BaseChatModel):
    upstream: Upstream
    profile: dict | None = None
    tools: list = []

    model_config = {"arbitrary_types_allowed": True}

    @property
    def _llm_type(self):
        return "light"

    def bind_tools(self, tools, **kwargs):
        return self.model_copy(
            update={"tools": list(map(convert_to_openai_tool, tools))}
        )

    def _generate(self, messages, *args, **kwargs):
        tools = {"tools": self.tools} if self.tools else {}
        answer = self.upstream.answer({"messages": to_wire(messages), **tools})
        if answer is None:
            raise ContextOverflowError("too long")
        (message,) = convert_to_messages([answer])
        return ChatResult(generations=[ChatGeneration(message=message)])
