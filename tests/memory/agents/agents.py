"""Agents and models for tests of the middleware."""

import json
import threading
from pathlib import Path

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langgraph.checkpoint.memory import InMemorySaver

from memory.agents.middleware import WindowpaneMiddleware

ROOT = Path(__file__).parents[3]
SIX_KEEP_TWO = {"trigger": ("messages", 6), "keep": ("messages", 2)}


class Model(BaseChatModel):
    """Answers with the given replies in turn, then by number; keeps what it was sent.

    A reply may be a text, a message or an error to raise.
    """

    replies: list = []
    requests: list = []
    default: str = "reply {}"
    profile: dict | None = None

    @property
    def _llm_type(self):
        return "scripted"

    def bind_tools(self, tools, **kwargs):
        return self

    def _generate(self, messages, *args, **kwargs):
        self.requests.append(messages)
        reply = self.replies.pop(0) if self.replies else self._number()
        if isinstance(reply, Exception):
            raise reply
        message = reply if isinstance(reply, AIMessage) else AIMessage(reply)
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _stream(self, messages, *args, **kwargs):
        for word in self._generate(messages).generations[0].message.text.split():
            yield ChatGenerationChunk(message=AIMessageChunk(word + " "))

    def _number(self):
        return self.default.format(len(self.requests))


def model(*replies, **fields):
    return Model(replies=list(replies), requests=[], **fields)


def summariser(*replies):
    return model(*replies, default="Summary {}.")


class Gate:
    """A summariser's function that waits until it is let go."""

    def __init__(self):
        self.entered, self.open = threading.Event(), threading.Event()
        self.calls = 0

    def __call__(self, messages):
        self.calls += 1
        self.entered.set()
        assert self.open.wait(10)
        return "They talked."


class Chat:
    """An agent with the middleware, and one thread of it."""

    def __init__(self, chat_model=None, *, tools=(), thread="1", **options):
        self.model = chat_model or model()
        options.setdefault("summarizer", summariser())
        self.summariser = options["summarizer"]
        options = (SIX_KEEP_TWO if "policy" not in options else {}) | options
        self.middleware = WindowpaneMiddleware(self.model, **options)
        self.agent = create_agent(
            self.model,
            tools=list(tools),
            system_prompt="Be brief.",
            middleware=[self.middleware],
            checkpointer=InMemorySaver(),
        )
        self.use(thread)

    def use(self, thread):
        self.thread = thread
        self.config = {"configurable": {"thread_id": thread}}
        return self

    def say(self, *texts, wait=True):
        for text in texts:
            said = {"messages": [HumanMessage(text)]}
            self.state = self.agent.invoke(said, self.config)
            if wait:
                self.middleware.wait(10)
        return self.state["messages"]

    async def say_async(self, text):
        said = {"messages": [HumanMessage(text)]}
        self.state = await self.agent.ainvoke(said, self.config)
        return self.state["messages"]

    @property
    def memory(self):
        return self.middleware.memory(self.thread)

    @property
    def sent(self):
        """The texts of the last request."""
        return [message.text for message in self.model.requests[-1]]

    @property
    def read(self):
        """The numbers that the summariser was sent, request by request."""
        documents = [json.loads(r[-1].text) for r in self.summariser.requests]
        return [[m["n"] for m in d.get("messages", [])] for d in documents]


def example(name):
    """Return the definitions of a program of the page, with the modules of this
    repository.
    """
    text = (ROOT / "memory" / "agents" / "README.md").read_text()
    code = text.split(f"<!-- {name} -->\n```python\n")[1].split("```")[0]
    names = {"__name__": "example"}
    code = code.replace("windowpane_memory.", "memory.")
    exec(code, names)  # noqa: S102 - the page's own program
    return names
