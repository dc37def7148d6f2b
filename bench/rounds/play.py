"""Plays one turn of many tool rounds with an agent, and reads each of its requests."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver

from bench.memory.models import SummaryModel
from bench.memory.writers import FACT, write_every_fact
from memory.agents.middleware import CEILING, WindowpaneMiddleware
from memory.engine.policy import Policy
from tests.fakes.openai_rules import find_faults
from tests.memory.agents.upstream import Upstream, count_body

ROUNDS = 60
QUESTION = "Read all the files, and tell me which fact is in which of them."
NEXT_QUESTION = "Which facts did you find?"
FILLER = "and so the day went on as most of them do "
# What a result holds, however much it is shortened.
WORDS = re.compile(r"fact-|the day went on|as most of them do")
CONFIG: Any = {"configurable": {"thread_id": "1"}, "recursion_limit": 1000}


@dataclass(frozen=True, slots=True)
class Agent:
    """A graph to invoke; `wait` returns when nothing is under way in the background."""

    graph: Any
    wait: Callable[[], object] = bool


@dataclass(frozen=True, slots=True)
class Turn:
    """The requests of one turn, and how many of the facts that the tools found are in
    the request for the next question.

    `without_result`: requests that lack the newest result, or have none of its text.
    `summaries`: requests to the summariser. `error` ended the turn, if any.
    """

    requests: int
    over_limit: int
    over_window: int
    refused: int
    without_question: int
    without_result: int
    largest: float
    summaries: int
    facts: int
    error: str = ""


def make_windowpane(
    models: tuple[BaseChatModel, BaseChatModel], tools: Sequence[BaseTool], window: int
) -> Agent:
    model, summarizer = models
    memory = WindowpaneMiddleware(model, summarizer=summarizer, policy=Policy())
    graph = create_agent(
        model, tools, middleware=[memory], checkpointer=InMemorySaver()
    )
    return Agent(graph, memory.wait)


def play(
    make: Callable[..., Agent], *, window: int, chars: int, rounds: int = ROUNDS
) -> Turn:
    upstream = Upstream(lambda number: _reply(number, rounds), told=window)
    summarizer = SummaryModel(log=[], write=write_every_fact, profile=upstream.profile)
    models = (upstream.model(), summarizer)
    agent = make(models, [make_tool(chars)], window)
    error = _ask(agent, QUESTION)
    bodies, summaries = [*upstream.bodies], len(summarizer.log)
    # What it is sent for the next question shows what it still knows.
    _ask(agent, NEXT_QUESTION)
    agent.wait()
    sizes = [count_body(body) for body in bodies]
    last = " ".join(text for body in upstream.bodies[-1:] for text in _texts(body))
    return Turn(
        requests=len(bodies),
        over_limit=sum(size > window * CEILING for size in sizes),
        over_window=sum(size > window for size in sizes),
        refused=sum(bool(find_faults(body["messages"])) for body in bodies),
        without_question=sum(QUESTION not in _texts(body) for body in bodies),
        without_result=sum(map(_lacks_result, bodies, range(len(bodies)))),
        largest=max(sizes, default=0) / window,
        summaries=summaries,
        facts=len(set(FACT.findall(last))),
        error=error,
    )


def make_tool(chars: int) -> BaseTool:
    @tool
    def read(n: int) -> str:
        """Read a file."""
        fact = f" [fact-{n:03}] "
        filler = (FILLER * (chars // len(FILLER) + 1))[: chars - len(fact)]
        # At the beginning, in the middle or at the end of the file.
        place = n % 3 * len(filler) // 2
        return filler[:place] + fact + filler[place:]

    return read


def _reply(number: int, rounds: int) -> str | list[tuple[str, dict[str, int]]]:
    if number > rounds:
        return "All of them are read."
    return [("read", {"n": number})]


def _ask(agent: Agent, question: str) -> str:
    """Play the turn. Returns the name of the error that ended it, or nothing."""
    try:
        agent.graph.invoke({"messages": [("user", question)]}, CONFIG)
    except Exception as error:  # noqa: BLE001 - it is a figure
        return type(error).__name__
    finally:
        agent.wait()
    return ""


def _lacks_result(body: dict[str, Any], rounds: int) -> bool:
    """Return whether a request lacks every word of the newest result of so
    many rounds.
    """
    newest = f"call_{rounds}_0"
    shown = zip(body["messages"], _texts(body), strict=True)
    read = [text for message, text in shown if message.get("tool_call_id") == newest]
    return rounds > 0 and not (read and WORDS.search(read[0]))


def _texts(body: dict[str, Any]) -> list[str]:
    contents = [message.get("content") or "" for message in body["messages"]]
    return [
        content
        if isinstance(content, str)
        else "".join(part.get("text", "") for part in content)
        for content in contents
    ]
