"""The nodes for a custom graph."""

import uuid

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from memory.agents.langgraph import (
    ContextState,
    build_context,
    load_memory,
    summarize,
)
from memory.engine.compose import to_wire
from memory.engine.policy import Policy
from memory.engine.tokens import count_tokens
from tests.fakes.openai_rules import find_faults

from ..engine.chats import assistant, tool
from .agents import Gate, model, summariser

POLICY = Policy(trigger=("messages", 6), keep=("messages", 2))


class State(ContextState, total=False):
    limit: int


class Chat:
    """A graph with the nodes, and one thread of it."""

    def __init__(
        self,
        chat_model=None,
        *,
        policy=POLICY,
        summarizer=None,
        before=False,
        **options,
    ):
        self.model = chat_model or model()
        self.summariser = summarizer or summariser()
        shared = {name: options.pop(name) for name in ("overhead",) if name in options}
        builder = StateGraph(State if callable(policy) else MessagesState)
        # Of the state, a node reads the keys of its schema.
        schema = {"input_schema": State} if callable(policy) else {}
        builder.add_node(build_context(policy, **shared), **schema)
        builder.add_node(self.call_model)
        node = summarize(self.summariser, policy, **shared, **options)
        builder.add_node(node, **schema)
        order = ["build_context", "call_model", "summarize"]
        order = order[-1:] + order[:-1] if before else order
        for start, end in zip([START, *order], order, strict=False):
            builder.add_edge(start, end)
        self.saver = InMemorySaver()
        self.graph = builder.compile(checkpointer=self.saver)
        self.thread = {"configurable": {"thread_id": "1"}}

    def call_model(self, state: ContextState):
        return {"messages": [self.model.invoke(state["context"]["messages"])]}

    def say(self, *texts, **state):
        for text in texts:
            said = {"messages": [HumanMessage(text)], **state}
            self.graph.invoke(said, self.thread)
        return self

    @property
    def state(self):
        return self.graph.get_state(self.thread).values

    @property
    def memory(self):
        return load_memory(self.state)

    @property
    def sent(self):
        return [message.text for message in self.model.requests[-1]]


def test_node_after_the_answer_keeps_the_transcript():
    chat = Chat().say("one", "two", "three")
    assert chat.sent == ["one", "reply 1", "two", "reply 2", "three"]
    (block,) = chat.memory.blocks
    assert (block.first_seq, block.last_seq, block.text) == (1, 4, "Summary 1.")
    chat.say("four")
    assert 'messages="1-4"' in chat.sent[0]
    assert chat.sent[1:] == ["three", "reply 3", "four"]
    assert len(chat.state["messages"]) == 8
    assert all(uuid.UUID(message.id) for message in chat.state["messages"][::2])


def test_node_before_the_call_makes_that_call_short():
    chat = Chat(before=True).say("one", "two", "three", "four")
    assert 'messages="1-4"' in chat.sent[0]
    assert chat.sent[1:] == ["three", "reply 3", "four"]


async def test_nodes_run_with_await():
    chat = Chat()
    for text in ("one", "two", "three"):
        said = {"messages": [HumanMessage(text)]}
        await chat.graph.ainvoke(said, chat.thread)
    assert len(chat.memory.blocks) == 1


def test_a_restart_summarises_nothing_twice():
    chat = Chat().say("one", "two", "three")
    again = Chat()
    again.graph.checkpointer = chat.saver
    again.say("four")
    assert 'messages="1-4"' in again.sent[0]
    assert again.summariser.requests == []


def test_a_changed_message_is_summarised_again():
    chat = Chat().say("one", "two", "three")
    first = chat.state["messages"][0]
    edited = HumanMessage("uno", id=first.id)
    chat.graph.update_state(chat.thread, {"messages": [edited]})
    chat.say("four")
    assert chat.sent[0] == "uno"
    assert "uno" in chat.summariser.requests[-1][-1].text


def test_a_policy_may_depend_on_the_state():
    def choose(state, config):
        assert config["configurable"]["thread_id"] == "1"
        return Policy(
            trigger=("messages", state.get("limit", 99)), keep=("messages", 2)
        )

    assert Chat(policy=choose).say("one", "two", "three").memory.blocks == []
    assert Chat(policy=choose).say("one", "two", limit=4).memory.blocks


def test_a_failing_summariser_changes_nothing_and_rests():
    chat = Chat(summarizer=summariser(*[OSError("down")] * 99))
    chat.say("one", "two", "three", "four")
    assert chat.sent == [*["one", "reply 1", "two", "reply 2"], *chat.sent[4:]]
    assert [record.error for record in chat.memory.records] == ["OSError"]


def test_node_does_not_wait_for_a_hanging_summariser(gate):
    chat = Chat(summarizer=gate, timeout=0.05).say("one", "two", "three", "four")
    assert chat.sent[-1] == "four"
    assert chat.memory.blocks == []
    # After that it rests, as after a failure.
    assert gate.calls == 1


@pytest.fixture
def gate():
    gate = Gate()
    yield gate
    gate.open.set()


def test_a_request_keeps_below_the_window():
    policy = Policy(context_window=1000)
    chat = Chat(policy=policy, summarizer=summariser(*[""] * 99), overhead=100)
    chat.say(*["word " * 80 for _ in range(12)])
    sizes = list(map(count_tokens, chat.model.requests))
    assert max(sizes) <= 850
    assert "left out here" in " ".join(chat.sent)
    assert all(find_faults(to_wire(request)) == [] for request in chat.model.requests)


def test_summaries_are_not_streamed():
    chat = Chat().say("one", "two", "three")
    said = {"messages": [HumanMessage("four")]}
    stream = chat.graph.stream(said, chat.thread, stream_mode="messages")
    assert "".join(piece.text for piece, _ in stream).strip() == "reply 4"
    again = {"messages": [HumanMessage("five")]}
    stream = chat.graph.stream(again, chat.thread, stream_mode="messages")
    assert "".join(piece.text for piece, _ in stream).strip() == "reply 5"
    assert len(chat.memory.records) == 2


@pytest.mark.parametrize("size", [50, 2000, 20_000])
def test_a_long_turn_of_tools_fits_and_keeps_its_question(size):
    policy, question = Policy(context_window=2000), HumanMessage("Find them all.")
    show, compact = build_context(policy), summarize(summariser(), policy)
    state = {"messages": [question]}
    for n in range(8):
        sent = show(state, {})["context"]["messages"]
        assert question in sent
        assert find_faults(to_wire(sent)) == []
        assert count_tokens(sent) <= 1900
        rounds = [assistant(n, "", [f"c{n}"]), tool(n, f"c{n}", "x" * size)]
        state["messages"] = [*state["messages"], *rounds]
        state |= compact(state, {})
    assert bool(load_memory(state).blocks) is (size > 50)
