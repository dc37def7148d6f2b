"""Threads that no provider would take: the request is valid and fits all the same."""

import uuid
from itertools import chain
from types import SimpleNamespace

import pytest
from langchain.agents.middleware.types import ModelRequest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from memory.agents.middleware import WindowpaneMiddleware
from memory.agents.stores import InMemoryStore
from memory.engine.compose import to_wire
from memory.engine.policy import Policy
from memory.engine.tools.rounds import NO_RESULT, repair_rounds
from memory.engine.tools.shorten import ARGUMENT_MARK
from tests.fakes.openai_rules import find_faults

from ..engine.chats import TIMES
from .agents import Chat, Gate, model, summariser
from .upstream import Upstream, count_body

SOUND = [{"name": "read", "args": {"n": 1}, "id": "a"}]
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
    """Return the request that is sent for these messages, and the middleware."""
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
def test_requests_are_valid_for_a_provider(messages, times):
    thread = [each.model_copy() for _ in range(times) for each in messages]
    sent, _ = ask([*thread, QUESTION])
    check(sent)
    assert sent[-1].text == QUESTION.text
    # In the middle of a turn, too.
    sent, _ = ask([QUESTION, *thread, call("z"), result("z")])
    check(sent)
    assert sent[-1].tool_call_id == "z"


def test_request_keeps_what_cannot_be_made_smaller():
    rules = SystemMessage("word " * 3_000)
    question = HumanMessage("word " * 3_000)
    for thread in ([rules], [question], [rules, AIMessage("Hi"), question]):
        sent, middleware = ask(thread)
        assert sent[-1] is thread[-1]
        assert find_faults(to_wire(sent)) == []


@pytest.mark.parametrize("value", TIMES)
def test_invalid_times_stop_no_compaction(value):
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


def test_results_are_moved_behind_their_calls():
    first, second, question = call("a", "b"), call("a"), HumanMessage("And?")
    a, b, other = result("a"), result("b"), result("a", "new")
    assert repair_rounds([first, b, question, a, second, other]) == [
        *(first, a, b),
        *(question, second, other),
    ]
    orphan, lone = result("x"), call("y")
    repaired = repair_rounds([orphan, lone, question])
    assert (repaired[0], repaired[1].text, repaired[2]) == (lone, NO_RESULT, question)
    in_order = [question, first, a, b]
    assert all(x is y for x, y in zip(repair_rounds(in_order), in_order, strict=True))


def test_calls_without_an_id_or_a_name_get_one():
    messages = [call("", "", "a"), result("", "one"), result("a"), result("", "two")]
    messages[0].tool_calls[2]["name"] = ""
    check(sent := repair_rounds([QUESTION, *messages]))
    assert [message.text for message in sent[2:]] == ["one", "two", "found"]


def test_unparsed_calls_are_left_out():
    upstream = Upstream(lambda number: "Done.", told=2_000)
    broken = {"name": "read", "args": '{"n": 1', "id": "x", "error": None}
    raw = {"id": "x", "type": "function", "function": {"name": "read"}}
    extra = {"tool_calls": [raw | {"function": {"name": "read", "arguments": "{"}}]}
    chat = Chat(upstream.client())
    chat.agent.invoke(
        {
            "messages": [
                QUESTION,
                AIMessage("Wait.", invalid_tool_calls=[broken]),
                AIMessage("", additional_kwargs=extra),
                AIMessage("So.", invalid_tool_calls=[broken], tool_calls=SOUND),
                result("a"),
            ]
        },
        chat.config,
    )
    assert upstream.faults == []
    assert upstream.bodies[0]["messages"][-2]["tool_calls"][0]["id"] == "a"


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize(("window", "count"), [(2_000, 9), (6_000, 200), (32_000, 200)])
def test_many_calls_are_kept_with_shorter_results(window, count, enabled):
    sent, _ = ask(many_calls(count), window=window, policy=Policy(enabled=enabled))
    check(sent, window)
    assert [sent[0], len(sent)] == [QUESTION, count + 2]
    assert " are left out; the whole is message 3 of this thread" in sent[2].text


@pytest.mark.parametrize("window", [1_200, 2_000, 4_000])
def test_first_calls_are_kept_if_not_all_have_room(window):
    sent, _ = ask(many_calls(200), window=window)
    check(sent, window)
    note, question, *turn = sent
    assert "left out here" in note.text
    assert question == QUESTION
    shown = len(turn) - 1
    assert shown > window // 100
    assert [m.tool_call_id for m in turn[1:]] == [f"call_{n}" for n in range(shown)]
    assert all(m.text.startswith("y" * 120 + "...(780 of 900") for m in turn[1:])
    assert f"({200 - shown} more calls of this round are left out" in turn[-1].text
    assert "more calls" not in turn[-2].text


def many_calls(count):
    ids = [f"call_{n}" for n in range(count)]
    return [QUESTION, call(*ids), *(result(id_, "y" * 900) for id_ in ids)]


def test_blocks_of_calls_without_room_are_left_out():
    turn = many_calls(200)
    blocks = [{"type": "tool_use", "id": f"call_{n}", "input": {}} for n in range(200)]
    turn[1].content = [{"type": "text", "text": "So."}, *blocks]
    sent, _ = ask(turn)
    caller = sent[2]
    assert [each["id"] for each in caller.tool_calls] == [
        block["id"] for block in caller.content[1:]
    ]


def test_result_of_five_megabytes_is_accepted():
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


@pytest.mark.parametrize(
    "picture",
    [
        lambda url: {"type": "image_url", "image_url": {"url": url}},
        lambda url: {"type": "image", "url": url},
        lambda url: {"type": "file", "url": url, "mime_type": "application/pdf"},
    ],
)
def test_images_are_read_by_url_only(picture):
    address = "https://example.org/a.png"
    blocks = [
        {"type": "text", "text": "Some pictures."},
        picture(address),
        picture(PIXEL),
        {"type": "image", "base64": PIXEL[22:], "mime_type": "image/png"},
        {"type": "audio", "base64": PIXEL[22:], "mime_type": "audio/wav"},
    ]
    writer = summariser()
    thread = [HumanMessage(blocks), AIMessage("Nice."), call("a"), result("a", blocks)]
    policy = Policy(trigger=("messages", 4), keep=("messages", 1))
    ask([*thread, AIMessage("Good."), QUESTION], summarizer=writer, policy=policy)
    read = writer.requests[0][-1].text
    assert read.count(address) == 2
    assert PIXEL[22:] not in read


REPLIES = [
    call("x", text="Let me look that up."),
    call("x"),
    AIMessage(""),
    AIMessage("I'm sorry, I can't help with that."),
    AIMessage("long " * 4_000),
    RuntimeError("down"),
]


@pytest.mark.parametrize("reply", REPLIES)
def test_bad_summary_covers_no_message(reply, monkeypatch):
    monkeypatch.setattr("memory.agents.summarizers.PAUSE", 0.0)
    writer = summariser(*[reply] * 99)
    turn = [QUESTION, *(each for n in range(9) for each in (call(f"c{n}"), long(n)))]
    sent, middleware = ask(turn, summarizer=writer, backoff=0.0)
    check(sent)
    assert QUESTION in sent
    assert memory_of(middleware).segments == ()
    assert all(record.error for record in memory_of(middleware).records)


@pytest.mark.parametrize("reply", [call("x", text="Wait."), AIMessage("Fine."), None])
def test_function_without_a_text_covers_no_message(reply):
    turn = [QUESTION, *(each for n in range(9) for each in (call(f"c{n}"), long(n)))]
    sent, middleware = ask(turn, summarizer=lambda messages: reply)
    check(sent)
    assert memory_of(middleware).segments == ()
    assert memory_of(middleware).records[0].error == "TypeError"


def long(n):
    return result(f"c{n}", "word " * 600)


def test_hanging_summariser_covers_no_message(monkeypatch):
    gate, waits = Gate(), []
    monkeypatch.setattr("memory.agents.middleware.futures.wait", wait_in_vain(waits))
    turn = [QUESTION, *(each for n in range(9) for each in (call(f"c{n}"), long(n)))]
    chat_model = model(profile={"max_input_tokens": 2_000})
    middleware = WindowpaneMiddleware(chat_model, policy=Policy(), summarizer=gate)
    for _ in range(3):
        request = ModelRequest(model=chat_model, messages=turn)
        middleware.wrap_model_call(request, lambda made: check(made.messages))
        assert gate.entered.wait(10)
        assert memory_of(middleware) is None
    # Only the first of the three has waited.
    assert waits == [60.0]
    gate.open.set()
    middleware.close()
    assert memory_of(middleware).segments


def wait_in_vain(waits):
    """Replace `futures.wait`: the time is over at once."""

    def wait(jobs, timeout=None):
        waits.append(timeout)
        return SimpleNamespace(not_done=set(jobs))

    return wait


def test_summaries_are_left_out_if_the_question_needs_the_room():
    thread = [*(HumanMessage("word " * 90) for _ in range(40)), QUESTION]
    options = {"summarizer": lambda read: "fact " * 400, "store": InMemoryStore()}
    sent, middleware = ask(thread, **options)
    check(sent)
    assert "fact fact" in sent[0].text
    question = HumanMessage("long " * 1_300)
    sent, middleware = ask([*thread[:-1], question], **options)
    check(sent)
    assert sent[-1] == question
    covered = memory_of(middleware).blocks[-1].last_seq
    assert f"The first {covered} messages and their summaries are" in sent[0].text


def test_old_arguments_of_the_turn_are_clipped_if_room_is_needed():
    def turn(rounds):
        pairs = ((call(f"c{n}", q="z" * 900), result(f"c{n}")) for n in range(rounds))
        return [QUESTION, *chain.from_iterable(pairs)]

    policy = Policy(enabled=False, truncate_tool_args=500)
    sent, _ = ask(turn(3), policy=policy)
    assert sent == turn(3)
    sent, _ = ask(turn(12), policy=policy)
    check(sent)
    assert len(sent) == 25
    texts = [each.tool_calls[0]["args"]["q"] for each in sent[1::2]]
    assert texts == ["z" * 20 + ARGUMENT_MARK] * 11 + ["z" * 900]
