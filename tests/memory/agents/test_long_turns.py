"""One user message, then many rounds of tools, before a strict provider."""

import re

import pytest
from langchain_core.tools import tool

from memory.engine.policy import Policy
from tests.patience import within

from .agents import Chat, Gate
from .upstream import Upstream

QUESTION = "Read all the files, and tell me which code belongs to which of them."
WINDOWS = (2_000, 6_000, 32_000)
FACT = re.compile(r"file \d+ has code-\d+")


def remember(messages):
    """The perfect summariser: it returns every fact that it reads."""
    facts = FACT.findall(" ".join(message.text for message in messages))
    return "; ".join(dict.fromkeys(facts)) or "Nothing yet."


def make_tool(chars):
    @tool
    def read(n: int) -> str:
        """Read a file."""
        return f"file {n} has code-{n * 7} ".ljust(chars, "x")

    return read


def reading(rounds, at_once=1):
    def reply(number):
        if number > rounds:
            return "All of them are read."
        first = (number - 1) * at_once
        return [("read", {"n": first + n}) for n in range(at_once)]

    return reply


class Failing:
    """A summariser's function that fails, and counts how often."""

    calls = 0

    def __call__(self, messages):
        self.calls += 1
        raise OSError("down")


def begin(upstream, chars, **options):
    options = {"policy": Policy(), "summarizer": remember} | options
    chat = Chat(upstream.model(), tools=[make_tool(chars)], **options)
    chat.config["recursion_limit"] = 1000
    return chat


def run(upstream, chars, *, wait=True, **options):
    chat = begin(upstream, chars, **options)
    chat.say(QUESTION, wait=wait)
    return chat


def texts_of(body):
    return [message.get("content") or "" for message in body["messages"]]


@pytest.mark.parametrize(
    ("window", "chars", "when"),
    [
        *((window, 50, "after") for window in WINDOWS),
        *((window, 20_000, "after") for window in WINDOWS),
        *((window, 2_000, "before") for window in WINDOWS),
        (6_000, 5_000, "after"),
    ],
)
def test_requests_stay_small_in_every_round_of_a_long_turn(window, chars, when):
    upstream = Upstream(reading(60), told=window)
    chat = run(upstream, chars, when=when)
    assert len(upstream.bodies) == 61
    assert [size for size in upstream.sizes if size > window * 0.95] == []
    assert upstream.faults == []
    assert all(QUESTION in texts_of(body) for body in upstream.bodies)
    assert len(chat.state["messages"]) == 122
    last = " ".join(texts_of(upstream.bodies[-1]))
    assert {f"file {n} has code-{n * 7}" for n in range(60)} <= set(FACT.findall(last))


def test_real_client_sends_the_same_requests():
    upstream = Upstream(reading(12, at_once=3), told=2_000)
    chat = Chat(
        upstream.client(),
        tools=[make_tool(3_000)],
        policy=Policy(),
        summarizer=remember,
    )
    chat.say(QUESTION)
    assert upstream.faults == []
    assert max(upstream.sizes) <= 1_900
    assert all(QUESTION in texts_of(body) for body in upstream.bodies)
    assert len(chat.memory.blocks) > 0


@pytest.mark.parametrize("at_once", [2, 10])
def test_parallel_calls_are_kept_with_their_results(at_once):
    upstream = Upstream(reading(20, at_once), told=6_000)
    chat = run(upstream, 2_000)
    assert upstream.faults == []
    assert max(upstream.sizes) <= 5_700
    ends = {record.last_seq for record in chat.memory.records}
    # The question, then a call and its results in each round.
    assert ends <= {1 + n * (at_once + 1) for n in range(21)}


def test_summary_is_made_in_the_background_if_there_is_room():
    gate = Gate()
    upstream = Upstream(reading(60), told=32_000)
    chat = run(upstream, 1_000, summarizer=gate, wait=False)
    assert len(upstream.bodies) == 61
    assert (gate.calls, chat.memory.records) == (1, ())
    gate.open.set()
    chat.middleware.close()
    assert chat.memory.records[0].last_seq > 1


def test_messages_are_cut_with_a_note_while_the_summariser_is_down():
    down = Failing()
    upstream = Upstream(reading(60), told=2_000)
    chat = run(upstream, 400, summarizer=down)
    assert upstream.faults == []
    assert max(upstream.sizes) <= 1_900
    assert chat.memory.segments == ()
    # It rests after the first failure, whatever the number of rounds.
    assert down.calls == 1
    last = texts_of(upstream.bodies[-1])
    assert QUESTION in last
    assert last[-1].startswith("file 59")
    assert " messages are left out here, as there is no room for them" in last[1]


def test_agent_waits_once_for_a_hanging_summariser():
    gate = Gate()
    upstream = Upstream(reading(20), told=2_000)
    with within(8):
        chat = run(upstream, 2_000, summarizer=gate, compaction_timeout=0.5, wait=False)
    assert len(upstream.bodies) == 21
    assert max(upstream.sizes) <= 1_900
    assert upstream.faults == []
    gate.open.set()
    chat.middleware.close()


def test_overflow_in_mid_turn_triggers_one_more_compaction():
    upstream = Upstream(reading(12), window=3_000)
    chat = run(upstream, 2_000)
    refused = [size for size in upstream.sizes if size > 3_000]
    assert 1 <= len(refused) < 12
    assert len(upstream.bodies) == 13 + len(refused)
    assert upstream.faults == []
    assert {record.trigger[0] for record in chat.memory.records} >= {"manual"}
    assert all(QUESTION in texts_of(body) for body in upstream.bodies)


async def test_requests_of_an_awaited_long_turn_stay_small():
    upstream = Upstream(reading(20), told=2_000)
    chat = begin(upstream, 2_000)
    await chat.say_async(QUESTION)
    assert max(upstream.sizes) <= 1_900
    assert upstream.faults == []
    assert len(chat.memory.blocks) > 0


def test_finished_turn_is_sent_in_the_next_one():
    upstream = Upstream(reading(20), told=2_000)
    chat = run(upstream, 2_000)
    chat.say("Which code has file 3?")
    last = texts_of(upstream.bodies[-1])
    assert "file 3 has code-21" in " ".join(last)
    assert (last[-1], QUESTION in last) == ("Which code has file 3?", False)
    assert max(upstream.sizes) <= 1_900
