"""Threads that no provider would take: the request is valid and fits all the same."""

import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain.agents.middleware.types import ModelRequest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from memory.agents.middleware import WindowpaneMiddleware
from memory.agents.tool_rounds import NO_RESULT, repair
from memory.engine.compose import to_wire
from memory.engine.cut_points import find_open_question
from memory.engine.policy import Policy

from ..engine.chats import TIMES
from .agents import model, summariser
from .upstream import count_body, find_faults

PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADU"
QUESTION = HumanMessage("What did you find?")


def call(*ids, text="", **args):
    calls = [{"name": "read", "args": args or {"n": 1}, "id": id_} for id_ in ids]
    return AIMessage(text, tool_calls=calls)


def result(id_, content="found"):
    return ToolMessage(content, tool_call_id=id_)


class Reader:
    """A summariser's function that knows which messages it has read.

    With `repeats` it shortens nothing.
    """

    def __init__(self, *, repeats=False):
        self.repeats = repeats
        self.read = set()

    def __call__(self, messages):
        self.read |= {int(each.id) for each in messages if each.id}
        texts = [each.text for each in messages] if self.repeats else []
        return " ".join(texts) or "They worked."


def ask(messages, *, window=2_000, summarizer=None, **options):
    """What is sent for these messages, and the middleware."""
    options = {"policy": Policy(), "summarizer": summarizer or Reader()} | options
    chat_model = model(profile={"max_input_tokens": window})
    middleware = WindowpaneMiddleware(chat_model, **options)
    sent = []
    request = ModelRequest(model=chat_model, messages=list(messages))
    middleware.wrap_model_call(request, lambda made: sent.append(made.messages))
    middleware.after_agent({"messages": list(messages)}, None)
    middleware.close()
    return sent[0], middleware


def check(sent, window=2_000):
    wire = to_wire(sent)
    assert find_faults(wire) == []
    assert count_body({"messages": wire}) <= window * 0.95


def memory_of(middleware):
    (memory,) = middleware.store._memories.values() or [None]
    return memory


@pytest.mark.parametrize(
    "messages",
    [
        [result("a")],
        [result("a"), call("a")],
        [call("a")],
        [call("a"), HumanMessage("Wait."), result("a")],
        [call("a", "b"), result("b"), HumanMessage("Wait."), result("a")],
        [call("a", "b"), result("b")],
        [call("a"), result("a"), result("a", "again")],
        [call("a", "a"), result("a"), result("a")],
        [call("a"), result("b"), call("b"), result("a")],
        [call("0"), result("0"), call("0"), result("0"), AIMessage("Done.")],
        [AIMessage([]), HumanMessage([]), HumanMessage(""), AIMessage("")],
        [HumanMessage([{"type": "text", "text": "a"}, {"type": "odd"}, "b"])],
        [SystemMessage("Late."), AIMessage("First.")],
        [],
    ],
)
@pytest.mark.parametrize("times", [1, 60])
def test_it_sends_what_a_provider_takes(messages, times):
    thread = [each.model_copy() for _ in range(times) for each in messages]
    sent, _ = ask([*thread, QUESTION])
    check(sent)
    assert sent[-1].text == QUESTION.text
    # In the middle of a turn, too.
    sent, _ = ask([QUESTION, *thread, call("z"), result("z")])
    check(sent)
    assert sent[-1].tool_call_id == "z"


def test_it_sends_what_cannot_be_made_smaller():
    rules = SystemMessage("word " * 3_000)
    question = HumanMessage("word " * 3_000)
    for thread in ([rules], [question], [rules, AIMessage("Hi"), question]):
        sent, middleware = ask(thread)
        assert sent[-1] is thread[-1]
        assert find_faults(to_wire(sent)) == []


@pytest.mark.parametrize("value", TIMES)
def test_no_time_stops_a_compaction(value):
    times = {"created_at": value}
    thread = [HumanMessage(f"keep {n}", additional_kwargs=times) for n in range(6)]
    policy = Policy(
        trigger=[("idle", 60), ("messages", 6)], keep=("messages", 2), important=("^k",)
    )
    writer = summariser()
    # The messages of a graph's state have such ids; they are sent as they are.
    thread[0].id = str(uuid.uuid4())
    before, _ = ask(thread[:4], summarizer=writer)
    _, middleware = ask(thread, summarizer=writer, policy=policy)
    assert before == thread[:4]
    assert [record.error for record in memory_of(middleware).records] == [""]
    request = ModelRequest(model=middleware.model, messages=thread)
    middleware.wrap_model_call(request, lambda made: check(made.messages))


def test_it_moves_results_behind_their_calls():
    first, second, question = call("a", "b"), call("a"), HumanMessage("And?")
    a, b, other = result("a"), result("b"), result("a", "new")
    assert repair([first, b, question, a, second, other]) == [
        *(first, a, b),
        *(question, second, other),
    ]
    orphan, lone = result("x"), call("y")
    repaired = repair([orphan, lone, question])
    assert (repaired[0], repaired[1].text, repaired[2]) == (lone, NO_RESULT, question)
    in_order = [question, first, a, b]
    assert all(x is y for x, y in zip(repair(in_order), in_order, strict=True))


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("count", [3, 200])
def test_it_takes_many_calls_at_once(count, enabled):
    ids = [f"call_{n}" for n in range(count)]
    turn = [QUESTION, call(*ids), *(result(id_, "y" * 900) for id_ in ids)]
    sent, _ = ask(turn, policy=Policy(enabled=enabled))
    check(sent)
    assert QUESTION in sent
    sent, _ = ask(turn, window=32_000, policy=Policy(enabled=enabled))
    check(sent, 32_000)
    assert len(sent) == count + 2


def test_it_takes_a_result_of_five_megabytes():
    huge = result("a", "word " * 1_000_000)
    reader = Reader()
    turn = [QUESTION, call("a"), huge]
    sent, _ = ask(turn, summarizer=reader)
    check(sent)
    assert sent[0] == QUESTION
    assert sent[2].text.startswith("word word")
    assert (
        "of 5,000,000 characters are left out; the whole is message 3" in sent[2].text
    )
    sent, middleware = ask([*turn, call("b"), result("b")], summarizer=reader)
    check(sent)
    assert memory_of(middleware).blocks[-1].last_seq == 3
    assert reader.read == {1, 2, 3}


def test_it_reads_images_by_address_only():
    blocks = [
        {"type": "text", "text": "Two pictures."},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "image_url", "image_url": {"url": PIXEL}},
    ]
    writer = summariser()
    thread = [HumanMessage(blocks), AIMessage("Nice."), call("a"), result("a", blocks)]
    policy = Policy(trigger=("messages", 4), keep=("messages", 1))
    ask([*thread, AIMessage("Good."), QUESTION], summarizer=writer, policy=policy)
    read = writer.requests[0][-1].text
    assert "https://example.org/a.png" in read
    assert "base64" not in read


REPLIES = [
    call("x", text="Let me look that up."),
    call("x"),
    AIMessage(""),
    AIMessage("I'm sorry, I can't help with that."),
    AIMessage("long " * 4_000),
    RuntimeError("down"),
]


@pytest.mark.parametrize("reply", REPLIES)
def test_it_covers_nothing_where_the_summary_is_no_good(reply, monkeypatch):
    monkeypatch.setattr("memory.agents.summarizers.PAUSE", 0.0)
    writer = summariser(*[reply] * 99)
    turn = [QUESTION, *(each for n in range(9) for each in (call(f"c{n}"), long(n)))]
    sent, middleware = ask(turn, summarizer=writer, backoff=0.0)
    check(sent)
    assert QUESTION in sent
    assert memory_of(middleware).segments == ()
    assert all(record.error for record in memory_of(middleware).records)


def long(n):
    return result(f"c{n}", "word " * 600)


# Any history of an agent.

TEXTS = st.sampled_from(["", "a", "word " * 100, "long " * 900, "思" * 300])
IDS = st.sampled_from("abcd")
MESSAGES = st.one_of(
    st.builds(HumanMessage, st.sampled_from(["Hi", "word " * 90, "思" * 90])),
    st.builds(AIMessage, TEXTS),
    st.builds(
        lambda ids, text, arg: call(*ids, text=text, q=arg),
        *(st.lists(IDS, min_size=1, max_size=4), TEXTS, TEXTS),
    ),
    st.builds(result, IDS, TEXTS),
    st.builds(SystemMessage, st.just("Rule.")),
)
NUMBERS = st.sampled_from([None, "1", "7", "x", "0192-uuid"])


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(MESSAGES, NUMBERS), max_size=40),
    st.sampled_from(["after", "before"]),
    st.sampled_from([1_500, 4_000]),
    st.booleans(),
)
def test_any_history_is_valid_and_fits(history, when, window, repeats):
    thread = [each.model_copy(update={"id": id_}) for each, id_ in history]
    thread.insert(len(thread) // 2, QUESTION)
    reader = Reader(repeats=repeats)
    sent, middleware = ask(thread, window=window, when=when, summarizer=reader)
    check(sent, window)
    if (asked := find_open_question(thread)) >= 0:
        assert thread[asked].text in [each.text for each in sent]
    if memory := memory_of(middleware):
        last = max((block.last_seq for block in memory.blocks), default=0)
        assert set(range(1, last + 1)) <= reader.read
