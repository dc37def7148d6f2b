import asyncio
import json
import subprocess
import sys
import time
import uuid
from collections import Counter
from contextlib import nullcontext

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware.types import AgentMiddleware, ModelRequest
from langchain_core.exceptions import ContextOverflowError, ModelAuthenticationError
from langchain_core.messages import (
    AIMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.tools import tool

from memory.agents import compaction
from memory.agents.middleware import WindowpaneMiddleware
from memory.agents.stores import CompactionRecord, InMemoryStore, ThreadMemory
from memory.engine.exceptions import PolicyError
from memory.engine.policy import Policy
from memory.engine.tokens import count_tokens

from .agents import SIX_KEEP_TWO, Chat, Gate, example, model, summariser

QUICK = {"backoff": 0.0}
RECORD = CompactionRecord(1, 0, 1, 4, ("messages", 6, 6), (), 20, 5)


@tool
def lookup(query: str) -> str:
    """Look something up."""
    return "found " * 1000


def calls(*ids, **args):
    args = args or {"query": "x"}
    listed = [{"name": "lookup", "args": args, "id": id_} for id_ in ids]
    return AIMessage("", tool_calls=listed)


def texts(messages):
    return [message.text for message in messages]


# The view.


def test_messages_of_the_state_are_unchanged():
    chat = Chat()
    said = [f"question {n}" for n in range(1, 8)]
    messages = chat.say(*said)
    assert texts(messages)[::2] == said
    assert len(messages) == 14


def test_request_has_the_summary_and_the_window():
    chat = Chat()
    chat.say("one", "two", "three", "four")
    system, summary, *window = chat.sent
    assert system == "Be brief."
    assert '<summary messages="1-4" version="1">Summary 1.</summary>' in summary
    assert window == ["three", "reply 3", "four"]


def test_summary_is_in_a_message_of_the_user():
    chat = Chat()
    chat.say("one", "two", "three", "four")
    assert [m.type for m in chat.model.requests[-1]][:2] == ["system", "human"]


def test_messages_are_compacted_exactly_once():
    chat = Chat(policy=Policy(trigger=("messages", 6), keep=("messages", 2)))
    chat.say(*map(str, range(9)))
    assert sum(chat.read, []) == list(range(1, 17))


def test_running_policy_extends_the_summary():
    chat = Chat()
    chat.say(*map(str, range(6)))
    first, second = chat.memory.records
    assert (first.first_seq, first.last_seq, first.replaced) == (1, 4, ())
    assert (second.first_seq, second.last_seq, second.replaced) == (1, 8, (1,))
    assert [block.version for block in chat.memory.blocks] == [2]


def test_layered_policy_merges_summaries():
    policy = Policy(
        trigger=("messages", 4), keep=("messages", 2), summary_budget=4, fan_in=2
    )
    chat = Chat(policy=policy)
    chat.say(*map(str, range(8)))
    records = chat.memory.records
    assert max(record.level for record in records) >= 1
    assert [r.version for r in records] == list(range(1, len(records) + 1))
    ends = [(b.first_seq, b.last_seq) for b in chat.memory.blocks]
    assert ends[0][0] == 1
    assert all(a[1] + 1 == b[0] for a, b in zip(ends, ends[1:], strict=False))


def test_system_messages_of_the_state_stay_in_front():
    chat = Chat()
    chat.agent.update_state(chat.config, {"messages": [SystemMessage("Rule 1.")]})
    chat.say(*map(str, range(5)))
    assert chat.sent[:2] == ["Be brief.", "Rule 1."]
    assert 'messages="1-4"' in chat.sent[2]


def test_threads_have_separate_memories():
    chat = Chat()
    chat.say("a1", "a2", "a3")
    chat.use("2").say("b1", "b2")
    assert chat.sent == ["Be brief.", "b1", "reply 4", "b2"]
    assert chat.memory == ThreadMemory()


def test_memory_without_a_thread_id_needs_the_same_messages():
    middleware = WindowpaneMiddleware(
        model(), summarizer=summariser(), background=False, **SIX_KEEP_TWO
    )
    chat_model = model()
    agent = create_agent(chat_model, middleware=[middleware])
    first = agent.invoke({"messages": [("user", str(n)) for n in range(6)]})
    agent.invoke({"messages": [*first["messages"], ("user", "next")]})
    assert "Summary 1." in chat_model.requests[-1][0].text
    agent.invoke({"messages": [("user", str(n)) for n in (0, 1, 9, 9, 4, 5)]})
    assert texts(chat_model.requests[-1]) == ["0", "1", "9", "9", "4", "5"]


def test_old_messages_are_recalled():
    chat = Chat()
    chat.say("My cat is called Mimi.", "two", "three", "four", "Name of my cat?")
    *_, recalled, newest = chat.sent
    assert "<recalled>" in recalled
    assert "My cat is called Mimi." in recalled
    assert newest == "Name of my cat?"


def test_policy_without_recall_recalls_nothing():
    policy = Policy(trigger=("messages", 6), keep=("messages", 2), recall_tokens=0)
    chat = Chat(policy=policy)
    chat.say("My cat is called Mimi.", "two", "three", "four", "Name of my cat?")
    assert not any("<recalled>" in text for text in chat.sent)


def test_important_messages_stay_word_for_word():
    policy = Policy(
        trigger=("messages", 6), keep=("messages", 2), important=("(?i)deadline",)
    )
    chat = Chat(policy=policy)
    chat.say("The deadline is Friday.", "two", "three", "four")
    assert "<pinned>" in chat.sent[2]
    assert "The deadline is Friday." in chat.sent[2]


def test_memory_survives_as_json():
    chat = Chat()
    chat.say(*map(str, range(4)))
    stored = json.loads(json.dumps(chat.memory.dump()))
    assert ThreadMemory.load(stored) == chat.memory


@pytest.mark.parametrize("stored", [None, "x", {"version": "a"}, {"segments": [{}]}])
def test_unreadable_memory_is_loaded_as_an_empty_one(stored):
    assert ThreadMemory.load(stored) == ThreadMemory()


def test_store_drops_the_threads_unused_for_longest():
    store = InMemoryStore(max_threads=2)
    for thread in "abc":
        store.save(thread, ThreadMemory(version=1), seen=0)
    assert [store.load(thread).version for thread in "abc"] == [0, 1, 1]


def test_requests_only_grow_at_the_end_between_compactions():
    policy = Policy(trigger=("messages", 12), keep=("messages", 4), recall_tokens=0)
    chat = Chat(policy=policy)
    chat.say(*[f"question {n}" for n in range(30)])
    requests = [texts(request) for request in chat.model.requests]
    pairs = list(zip(requests, requests[1:], strict=False))
    changed = sum(new[: len(old)] != old for old, new in pairs)
    # The last compaction came after the last request.
    assert changed == len(chat.memory.records) - 1 == 6


def test_same_messages_have_the_same_view():
    chat = Chat()
    chat.say(*map(str, range(6)))
    made = len(chat.summariser.requests)
    state = {"messages": chat.state["messages"]}
    viewer, memory = chat.middleware._viewer, chat.memory
    policy = chat.middleware.policy
    views = [viewer.compose_view(state["messages"], memory, policy) for _ in range(2)]
    assert views[0].context.messages == views[1].context.messages
    assert len(chat.summariser.requests) == made


# Tools.


def test_call_is_kept_with_its_results():
    chat = Chat(model("a", "b", calls("c1", "c2"), "c", "d"), tools=[lookup])
    chat.say("one", "two", "three", "four")
    window = chat.model.requests[-1]
    known = {c["id"] for m in window for c in getattr(m, "tool_calls", [])}
    assert {m.tool_call_id for m in window if isinstance(m, ToolMessage)} == known


def test_question_is_kept_while_tools_are_used():
    policy = Policy(trigger=("tokens", 60), keep=("tokens", 1))
    chat = Chat(
        model(*[calls(f"c{n}") for n in range(4)]), tools=[lookup], policy=policy
    )
    chat.say("What is the answer?")
    assert all("What is the answer?" in texts(r) for r in chat.model.requests)


def test_old_arguments_are_shortened_in_the_view_only():
    policy = Policy(truncate_tool_args=50)
    chat = Chat(model(calls("c1", query="x" * 900)), tools=[lookup], policy=policy)
    chat.say("one")
    assert chat.model.requests[-1][2].tool_calls[0]["args"] == {"query": "x" * 900}
    messages = chat.say("two")
    short = {"query": "x" * 20 + "...(argument truncated)"}
    assert chat.model.requests[-1][2].tool_calls[0]["args"] == short
    assert messages[1].tool_calls[0]["args"] == {"query": "x" * 900}


def test_system_prompt_and_tools_are_counted():
    @tool
    def long_winded(query: str) -> str:
        """Look something up."""

    long_winded.description = "word " * 600
    policy = Policy(trigger=("fraction", 0.5), keep=("turns", 1), context_window=1200)
    few = Chat(policy=policy)
    few.say("one", "two")
    assert few.memory.records == ()
    many = Chat(policy=policy, tools=[long_winded])
    many.say("one", "two")
    assert many.memory.records[0].trigger[0] == "fraction"


class Router(AgentMiddleware):
    """Sends each call of a turn to the next of these models."""

    def __init__(self, *models):
        super().__init__()
        self.models = list(models)

    def wrap_model_call(self, request, handler):
        return handler(request.override(model=self.models.pop(0)))


def test_fraction_is_one_of_the_window_of_the_model_that_a_router_chose():
    """The second call of the turn goes to a model with a smaller window."""
    large, small = ({"max_input_tokens": size} for size in (100_000, 8_000))
    first = model(calls("c1"), profile=large)
    then = model("done", profile=small)
    half = {"trigger": ("fraction", 0.5), "keep": ("messages", 2)}
    made = WindowpaneMiddleware(first, summarizer=summariser(), **half)
    agent = create_agent(first, tools=[lookup], middleware=[Router(first, then), made])
    said = [HumanMessage("word " * 2000), AIMessage("yes"), HumanMessage("go")]
    agent.invoke({"messages": said}, {"configurable": {"thread_id": "1"}})
    made.wait(10)
    (record,) = made.memory("1").records
    kind, value, limit = record.trigger
    assert (kind, limit) == ("fraction", 0.5)
    assert 0.5 < value < 1
    assert [len(each.requests) for each in (first, then)] == [1, 1]


def test_summary_of_a_smaller_windows_call_is_not_due_for_the_larger():
    profile = {"max_input_tokens": 8_000}
    asked = model("one", profile={"max_input_tokens": 100_000})
    half = {"trigger": ("fraction", 0.5), "keep": ("messages", 2)}
    made = WindowpaneMiddleware(model(profile=profile), summarizer=summariser(), **half)
    agent = create_agent(model(profile=profile), middleware=[Router(asked), made])
    said = [HumanMessage("word " * 4000), AIMessage("yes"), HumanMessage("go")]
    agent.invoke({"messages": said}, {"configurable": {"thread_id": "1"}})
    made.wait(10)
    assert made.memory("1").records == ()


# The ceiling and the overflow.


def test_requests_stay_below_the_window_of_the_model():
    policy = Policy(enabled=False)
    chat = Chat(model(profile={"max_input_tokens": 400}), policy=policy)
    for n in range(20):
        chat.say(f"{n} " + "word " * 40)
        assert count_tokens(chat.model.requests[-1]) <= 380
        assert chat.sent[-1].startswith(f"{n} ")
    assert chat.memory.records == ()


def test_ceiling_cuts_old_results_of_the_running_turn():
    replies = [calls("c1"), calls("c2"), "done"]
    chat = Chat(
        model(*replies, profile={"max_input_tokens": 2000}),
        tools=[lookup],
        policy=Policy(enabled=False),
    )
    chat.say("go")
    results = [m for m in chat.model.requests[-1] if isinstance(m, ToolMessage)]
    assert count_tokens(chat.model.requests[-1]) <= 1900
    mark = " of 6,000 characters are left out; the whole is message 3 of this thread)"
    assert results[0].text.endswith(mark)
    assert len(results[0].text) < len(results[1].text)
    assert chat.state["messages"][2].text == "found " * 1000


def test_overflow_is_compacted_and_retried_once():
    chat = Chat(trigger=None, keep=("messages", 20))
    chat.say(*["word " * 100] * 4)
    chat.model.replies.append(ContextOverflowError("too long"))
    chat.say("short")
    before, after = chat.model.requests[-2:]
    assert count_tokens(after) < count_tokens(before)
    assert chat.sent[-1] == "short"
    assert chat.memory.records[0].trigger[0] == "manual"


async def test_awaited_overflow_is_retried():
    chat = Chat(trigger=None)
    chat.say(*["word " * 100] * 4)
    chat.model.replies.append(ContextOverflowError("too long"))
    messages = await chat.say_async("short")
    assert messages[-1].text.startswith("reply")
    assert len(chat.model.requests) == 6


class ServerError(Exception):
    """An error of a provider that LangChain has no class for."""

    def __init__(self, status_code, text):
        super().__init__(text)
        self.status_code = status_code


@pytest.mark.parametrize(
    ("error", "requests"),
    [
        (ServerError(400, "This model's maximum context length is 8192 tokens"), 6),
        (ServerError(413, "Payload Too Large"), 6),
        (ServerError(400, "Unknown parameter: tools"), 5),
        (ServerError(503, "The context window service is down"), 5),
    ],
)
def test_overflow_is_known_by_the_words_of_any_provider(error, requests):
    chat = Chat(trigger=None, keep=("messages", 20))
    chat.say(*["word " * 100] * 4)
    chat.model.replies.append(error)
    raised = nullcontext() if requests == 6 else pytest.raises(ServerError)
    with raised:
        chat.say("short")
    assert len(chat.model.requests) == requests


def test_overflow_after_the_retry_is_raised():
    chat = Chat()
    chat.say(*["word " * 100] * 2)
    chat.model.replies += [ContextOverflowError("no"), ContextOverflowError("still")]
    with pytest.raises(ContextOverflowError, match="still"):
        chat.say("three")
    assert len(chat.model.requests) == 4


def test_request_that_cannot_be_smaller_is_not_retried():
    chat = Chat(model(ContextOverflowError("no")))
    with pytest.raises(ContextOverflowError, match="no"):
        chat.say("word " * 500)
    assert len(chat.model.requests) == 1


# Compaction.


def test_agent_answers_while_the_summariser_works():
    gate = Gate()
    chat = Chat(summarizer=gate)
    chat.say("one", "two", wait=False)
    chat.say("three", "four", wait=False)
    assert gate.entered.wait(10)
    assert chat.sent[-1] == "four"
    assert chat.memory.records == ()
    gate.open.set()
    chat.middleware.close()
    assert chat.memory.records[0].text == "They talked."


def test_agent_compacts_before_it_returns_without_background():
    chat = Chat(background=False)
    chat.say("one", "two", "three", wait=False)
    assert len(chat.memory.records) == 1


async def test_awaited_agent_compacts():
    chat = Chat(background=False)
    for n in range(4):
        await chat.say_async(str(n))
    assert len(chat.memory.records) == 1
    assert "Summary 1." in chat.sent[1]


def test_agent_answers_without_a_working_summariser():
    down = summariser(*[RuntimeError("down")] * 999)
    chat = Chat(model(), summarizer=down, **QUICK)
    messages = chat.say(*map(str, range(10)))
    assert len(messages) == 20
    assert all(r.error == "RuntimeError" for r in chat.memory.records)
    assert chat.memory.segments == ()
    down.replies.clear()
    chat.say("back")
    assert [(b.first_seq, b.last_seq) for b in chat.memory.blocks] == [(1, 20)]


def test_compaction_pauses_after_a_failure():
    chat = Chat(summarizer=summariser(*[RuntimeError("down")] * 999))
    chat.say(*map(str, range(10)))
    assert len(chat.memory.records) == 1
    assert chat.memory.rest_until > time.time() + 20


@pytest.mark.parametrize("reply", ["", "  ", "I'm sorry, I can't help with that."])
def test_bad_summary_does_not_change_the_view(reply):
    chat = Chat(summarizer=summariser("Good.", reply), **QUICK)
    chat.say(*map(str, range(5)))
    assert chat.memory.blocks[0].text == "Good."
    assert chat.memory.records[1].error


def test_failing_request_is_tried_three_times():
    down = summariser(RuntimeError("a"), RuntimeError("b"), "Third time.")
    chat = Chat(summarizer=down)
    chat.say("one", "two", "three")
    assert [r.text for r in chat.memory.records] == ["Third time."]
    assert len(down.requests) == 3


def test_request_that_cannot_succeed_is_not_repeated():
    down = summariser(ModelAuthenticationError("bad key sk-1"))
    chat = Chat(summarizer=down)
    chat.say("one", "two", "three")
    assert len(down.requests) == 1
    assert chat.memory.records[0].error == "ModelAuthenticationError"


def test_overflow_of_the_summariser_leads_to_smaller_pieces():
    chat = Chat(summarizer=summariser(ContextOverflowError("too long")))
    chat.say(*[f"{n} " + "word " * 700 for n in range(3)])
    first, *others = chat.read
    assert first == [1, 2, 3, 4]
    assert sum(others, []) == [1, 2, 3, 4]
    assert [record.error for record in chat.memory.records] == [""]


def test_summariser_gives_up_when_smaller_pieces_do_not_help():
    errors = [ContextOverflowError("too long"), ContextOverflowError("too long")]
    chat = Chat(summarizer=summariser(*errors))
    chat.say("one", "two", "three")
    assert len(chat.summariser.requests) == 2
    assert chat.memory.records[0].error == "ContextOverflowError"


def test_log_has_no_text_of_an_error(caplog):
    chat = Chat(summarizer=summariser(ModelAuthenticationError("bad key sk-1")))
    chat.say("one", "two", "three")
    assert "compaction failed" in caplog.text
    assert "sk-1" not in caplog.text


def test_edited_messages_are_summarised_again():
    chat = Chat()
    messages = chat.say(*map(str, range(4)))
    edited = HumanMessage("changed", id=messages[0].id)
    chat.agent.update_state(chat.config, {"messages": [edited]})
    chat.say("next")
    assert not any("Summary 1." in text for text in chat.sent)
    assert chat.sent[1] == "changed"
    assert chat.read[-1] == list(range(1, 9))


def test_summarised_messages_may_be_removed():
    chat = Chat()
    messages = chat.say(*map(str, range(4)))
    gone = [RemoveMessage(id=message.id) for message in messages[:2]]
    chat.agent.update_state(chat.config, {"messages": gone})
    chat.say("next")
    assert chat.sent[1:] == ["1", "reply 2", "2", "reply 3", "3", "reply 4", "next"]


def test_broken_memory_is_replaced_by_a_new_one():
    class Broken(InMemoryStore):
        def load(self, thread_id):
            raise OSError("disk")

    chat = Chat(store=Broken())
    chat.say("one", "two", "three", "four")
    assert chat.sent[1:] == [
        "one",
        "reply 1",
        "two",
        "reply 2",
        "three",
        "reply 3",
        "four",
    ]


def test_agent_answers_when_the_token_counter_fails():
    def counter(messages):
        raise ZeroDivisionError

    chat = Chat(token_counter=counter)
    assert len(chat.say("one", "two", "three", "four")) == 8
    assert len(chat.memory.records) == 1


def test_count_of_the_provider_is_used():
    usage = {"input_tokens": 10_000, "output_tokens": 1, "total_tokens": 10_001}
    policy = Policy(trigger=("tokens", 9900), keep=("tokens", 1))
    chat = Chat(model("a", AIMessage("b", usage_metadata=usage)), policy=policy)
    chat.say("one", "two")
    assert chat.memory.records[0].trigger[0] == "tokens"
    chat.say("three", "four")
    assert len(chat.memory.records) == 1


@pytest.mark.parametrize(("provider", "compactions"), [("model", 1), ("other", 0)])
def test_count_of_another_provider_is_ignored(provider, compactions):
    usage = {"input_tokens": 10_000, "output_tokens": 1, "total_tokens": 10_001}
    told = {"model_provider": provider}
    answer = AIMessage("b", usage_metadata=usage, response_metadata=told)
    policy = Policy(trigger=("tokens", 9900), keep=("tokens", 1))
    chat = Chat(model("a", answer), policy=policy)
    chat.say("one", "two")
    assert len(chat.memory.records) == compactions


@pytest.mark.parametrize("told", ["bedrock", "bedrock_converse", "amazon_bedrock", ""])
def test_provider_is_known_by_its_other_names(told):
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    metadata = {"model_provider": told}
    answer = AIMessage("b", usage_metadata=usage, response_metadata=metadata)
    assert compaction.reported_tokens([answer], "amazon_bedrock") == 2
    assert bool(compaction.reported_tokens([answer], "openai")) == (told == "")


@pytest.mark.parametrize("recall", [0, 500])
def test_messages_are_counted_once_for_a_request(recall):
    counted = Counter()

    def count(messages):
        counted.update(message.text for message in messages)
        return count_tokens(messages)

    policy = Policy(trigger=("messages", 6), keep=("messages", 2), recall_tokens=recall)
    chat = Chat(policy=policy, token_counter=count)
    chat.say("one", "two", "three", "four")
    counted.clear()
    request = ModelRequest(
        model=chat.model, messages=[*chat.state["messages"], HumanMessage("five")]
    )
    sent = chat.middleware._send(chat.middleware._open(request)).messages
    assert sent[-1].text == "five"
    assert {counted[message.text] for message in sent} == {1}


# Streams.


def test_summary_tokens_are_not_streamed():
    chat = Chat(background=False)
    chat.say("one", "two")
    said = {"messages": [HumanMessage("three")]}
    parts = list(chat.agent.stream(said, chat.config, stream_mode="messages"))
    assert "".join(message.text for message, _ in parts).strip() == "reply 3"
    assert len(chat.memory.records) == 1


async def test_summary_tokens_after_an_overflow_are_not_streamed():
    chat = Chat(trigger=None)
    chat.say(*["word " * 100] * 4)
    chat.model.replies.append(ContextOverflowError("too long"))
    said = {"messages": [HumanMessage("five")]}
    stream = chat.agent.astream(said, chat.config, stream_mode="messages")
    received = [message.text async for message, _ in stream]
    # Another one may be made meanwhile, now that the room is known.
    assert chat.memory.records[0].trigger[0] == "manual"
    assert "Summary" not in "".join(received)


# Several at once.


def test_room_of_a_thread_comes_from_its_own_requests():
    sizes = {"trigger": ("messages", 6), "keep": ("messages", 2)}
    policy = Policy(important=("^keep",), context_window=4000, **sizes)
    chat = Chat(policy=policy)
    chat.say("keep " + "word " * 700, "one", "two")
    seen = []
    start = chat.middleware._compactor.start_task
    chat.middleware._compactor.start_task = lambda task: (
        seen.append(task) or start(task)
    )
    chat.use("2").say("one")
    chat.use("1").say("three")
    assert [task.thread for task in seen] == ["thread:2", "thread:1"]
    assert seen[0].room > seen[1].room


def test_store_keeps_one_of_two_concurrent_summaries():
    store = InMemoryStore()
    seen = store.load("t")
    one, other = seen.add_compaction((), RECORD), seen.add_compaction((), RECORD)
    assert store.save("t", one, seen=seen.version)
    assert not store.save("t", other, seen=seen.version)
    assert store.load("t") is one


def test_thread_is_compacted_once_at_a_time():
    gate = Gate()
    chat = Chat(summarizer=gate)
    chat.say("one", "two", "three", wait=False)
    assert gate.entered.wait(10)
    chat.say("four", "five", wait=False)
    assert gate.calls == 1
    gate.open.set()
    chat.middleware.wait(10)
    assert gate.calls == len(chat.memory.records) == 2


def test_closed_middleware_still_answers():
    chat = Chat()
    chat.middleware.close()
    assert len(chat.say("one", "two", "three")) == 6
    assert chat.memory.records == ()


# Arguments.


def test_function_summarises():
    seen = []

    def write(messages):
        seen.append(texts(messages))
        return f"They said {len(messages)} things."

    chat = Chat(summarizer=write)
    chat.say(*map(str, range(6)))
    assert seen[0] == ["0", "reply 1", "1", "reply 2"]
    assert "They said 4 things." in seen[1][0]
    assert chat.memory.blocks[0].text == "They said 5 things."


def test_coroutine_summarises():
    async def write(messages):
        await asyncio.sleep(0)
        return "They talked."

    chat = Chat(summarizer=write)
    chat.say("one", "two", "three")
    assert chat.memory.blocks[0].text == "They talked."


def test_summary_that_is_no_text_is_rejected():
    chat = Chat(summarizer=lambda messages: ["They talked."])
    chat.say("one", "two", "three")
    assert [r.error for r in chat.memory.records] == ["TypeError"]


def test_content_blocks_of_the_summariser_are_read():
    blocks = [{"type": "text", "text": "They "}, {"type": "text", "text": "talked."}]
    chat = Chat(summarizer=summariser(AIMessage(blocks)))
    chat.say("one", "two", "three")
    assert chat.memory.blocks[0].text == "They talked."


def test_custom_prompt_may_have_braces():
    prompt = 'Answer {"like": "this"}.\n<messages>\n{messages}\n</messages>'
    chat = Chat(summary_prompt=prompt)
    chat.say("one", "two", "three")
    sent = chat.summariser.requests[0][0].text
    assert 'Answer {"like": "this"}.' in sent
    assert "{messages}" not in sent


def test_sizes_of_langchain_are_accepted():
    middleware = WindowpaneMiddleware(
        model(),
        trigger=[("tokens", 5000), {"messages": 30, "tokens": 900}],
        keep=("messages", 10),
        trim_tokens_to_summarize=3000,
    )
    policy = middleware.policy
    assert policy.trigger == (
        (("tokens", 5000),),
        (("messages", 30), ("tokens", 900)),
    )
    assert (policy.keep, policy.chunk_tokens) == (("messages", 10), 3000)


def test_default_policy_is_layered():
    assert WindowpaneMiddleware(model()).policy == Policy()


def test_policy_and_trigger_together_are_rejected():
    with pytest.raises(PolicyError, match="expected without"):
        WindowpaneMiddleware(model(), trigger=("messages", 50), policy=Policy())


@pytest.mark.parametrize("profile", [None, {}, {"max_input_tokens": "many"}])
def test_fraction_needs_a_known_window(profile):
    with pytest.raises(PolicyError, match="max_input_tokens"):
        WindowpaneMiddleware(model(profile=profile), trigger=("fraction", 0.5))


def test_window_is_that_of_the_models_profile():
    middleware = WindowpaneMiddleware(
        model(profile={"max_input_tokens": 1000}), trigger=("fraction", 0.5)
    )
    assert middleware.context_window == 1000


def test_documented_example_runs():
    names = example("example")
    assert len(names["transcript"]) == 6
    assert names["compacted"].text == "The user is Lance and likes the 49ers."
    assert (names["compacted"].first_seq, names["compacted"].last_seq) == (1, 2)


def test_documented_graph_runs():
    names = example("graph")
    messages = names["state"]["messages"]
    assert len(messages) == 6
    assert all(uuid.UUID(each.id) for each in messages[::2])
    blocks = names["memory"].blocks
    assert [(block.first_seq, block.last_seq) for block in blocks] == [(1, 2), (3, 4)]


def test_agents_load_without_django():
    code = (
        "import sys, memory.agents.middleware;"
        "sys.exit(any(name.split('.')[0] == 'django' for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


def test_item_that_changes_the_configuration_stays_in_its_message():
    """An item of langchain-openai changes the effort from its message on."""
    update = {"type": "configuration_update", "reasoning": {"effort": "high"}}
    chat = Chat()
    chat.say("one", "two", "three")
    said = [HumanMessage([update, {"type": "text", "text": "Think."}])]
    for messages in (said, [HumanMessage("four")]):
        chat.agent.invoke({"messages": messages}, chat.config)
        chat.middleware.wait(10)
        kept = [each for each in chat.model.requests[-1] if each.text == "Think."]
        assert [each.content[0] for each in kept] == [update]
    assert chat.memory.segments
