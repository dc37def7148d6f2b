"""LangMem's names over this engine.

The first part has the cases of LangMem's own tests (`short_term` among the tests of
github.com/langchain-ai/langmem, MIT), where a message counts as one token; the second
what is different here.
"""

import asyncio
import re
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import (
    AIMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.prompts import ChatPromptTemplate
from langgraph.graph import START, MessagesState, StateGraph
from pydantic import BaseModel

from memory.agents import langmem
from memory.agents.langmem import RunningSummary, SummarizationNode
from memory.engine.compose import to_wire
from memory.engine.cut_points import find_newest_question
from memory.engine.tokens import count_tokens
from tests.fakes.openai_rules import find_faults

from ..engine.chats import assistant, chat, seqs, tool, user
from .agents import model, summariser

SYSTEM = SystemMessage("Be brief.", id="0")
COVERS = "Summary of the conversation so far: {}"
CREATE = "Create a summary of the conversation above:"


@pytest.fixture(params=["sync", "async"])
def summarise(request):
    """`summarize_messages` or its twin, as a function to await."""
    if request.param == "async":
        return langmem.asummarize_messages

    async def call(messages, **options):
        return langmem.summarize_messages(messages, **options)

    return call


def ones(running=None, *, max_tokens=6, **options):
    """Keywords with which a message is a token."""
    defaults = {"token_counter": len, "max_summary_tokens": 1, "model": summariser()}
    return {
        "running_summary": running,
        "max_tokens": max_tokens,
        **defaults,
        **options,
    }


def texts(messages):
    return [message.text for message in messages]


def find_faults_of(messages):
    return find_faults(to_wire(messages))


class TestLangMemsCases:
    @pytest.mark.parametrize("messages", [[], [SYSTEM], chat(5)])
    async def test_messages_stay_while_there_is_room(self, summarise, messages):
        options = ones(max_tokens=10)
        result = await summarise(messages, **options)
        assert (result.messages, result.running_summary) == (messages, None)
        assert options["model"].requests == []

    async def test_tokens_are_counted_once_while_there_is_room(self, summarise):
        counted = []
        options = ones(
            max_tokens=999, token_counter=lambda each: counted.append(1) or 0
        )
        await summarise(chat(100), **options)
        assert len(counted) == 1

    @pytest.mark.parametrize(
        ("count", "max_tokens", "before", "kept"),
        [(9, 6, None, 3), (9, 6, 8, 1), (41, 22, None, 19)],
    )
    async def test_first_messages_are_summarised(
        self, summarise, count, max_tokens, before, kept
    ):
        messages = chat(count)
        options = ones(max_tokens=max_tokens, max_tokens_before_summary=before)
        for _ in range(2):
            result = await summarise(messages, **options)
            running = options["running_summary"] = result.running_summary
            shown = result.messages
            assert shown[0].type == "system"
            assert shown[0].text == COVERS.format("Summary 1.")
            assert shown[1:] == messages[-kept:]
            assert running.summarized_message_ids == {
                message.id for message in messages[:-kept]
            }
        # The second call found nothing new.
        assert len(options["model"].requests) == 1

    async def test_system_message_is_not_summarised(self, summarise):
        options = ones()
        result = await summarise([SYSTEM, *chat(9)], **options)
        assert options["model"].requests == [[*chat(6), HumanMessage(CREATE)]]
        assert texts(result.messages[:2]) == ["Be brief.", COVERS.format("Summary 1.")]
        assert seqs(result.messages[2:]) == [7, 8, 9]

    async def test_messages_without_content_are_counted(self, summarise):
        messages = [user(1, ""), *chat(8, "Response 1")[1:], user(9)]
        count = count_tokens_approximately
        options = ones(max_tokens=50, max_summary_tokens=10, token_counter=count)
        result = await summarise(messages, **options)
        assert result.messages[1:] == messages[-1:]

    async def test_summary_is_extended_with_new_messages(self, summarise):
        first = await summarise(chat(7), **ones())
        options = ones(first.running_summary, model=summariser("Longer."))
        second = await summarise(chat(15), **options)
        (request,) = options["model"].requests
        # LangMem's own test asserts that 7 and 8 are not among them.
        assert request[:-1] == chat(12)[6:]
        assert "so far: Summary 1.\n\nExtend this summary" in request[-1].text
        assert seqs(second.messages[1:]) == [13, 14, 15]
        assert len(second.running_summary.summarized_message_ids) == 12
        assert second.running_summary.last_summarized_message_id == "12"

    async def test_summary_of_returned_messages_is_extended(self, summarise):
        first = await summarise(chat(7), **ones())
        options = ones(first.running_summary, model=summariser("Longer."))
        given = [*first.messages, *chat(15)[7:]]
        second = await summarise(given, **options)
        (request,) = options["model"].requests
        assert seqs(request[:-1]) == list(range(7, 13))
        assert texts(second.messages[:1]) == [COVERS.format("Longer.")]
        assert seqs(second.messages[1:]) == [13, 14, 15]

    async def test_a_call_leaves_with_all_its_results(self, summarise):
        window = [user(1), assistant(2, "", ["a", "b"]), tool(3, "a"), tool(4, "b")]
        messages = [*window, assistant(5), user(6)]
        options = ones(max_tokens_before_summary=2)
        result = await summarise(messages, **options)
        assert result.messages[1:] == messages[-2:]
        assert result.running_summary.summarized_message_ids == set("1234")

    async def test_messages_without_an_id_are_rejected(self, summarise):
        with pytest.raises(ValueError, match="required to have ID field"):
            await summarise([user(1), AIMessage("hi")], **ones())

    async def test_repeated_message_is_rejected(self, summarise):
        first = await summarise(chat(3), **ones(max_tokens=2))
        again = [*chat(3), assistant(4), user(1)]
        with pytest.raises(ValueError, match="ID 1 has already been summarized"):
            await summarise(again, **ones(first.running_summary))

    async def test_summary_without_room_is_rejected(self, summarise):
        with pytest.raises(ValueError, match="must be less than"):
            await summarise(chat(3), **ones(max_summary_tokens=6))


class TestNode:
    def node(self, *replies, **options):
        options = ones(model=summariser(*replies), **options)
        del options["running_summary"]
        return SummarizationNode(**options)

    @pytest.mark.parametrize("is_async", [False, True])
    async def test_node_returns_the_result_of_the_function(self, is_async):
        node = self.node()
        state = {"messages": chat(9), "context": {"topic": "tea"}}
        update = await node.ainvoke(state) if is_async else node.invoke(state)
        assert texts(update["summarized_messages"])[0] == COVERS.format("Summary 1.")
        assert seqs(update["summarized_messages"][1:]) == [7, 8, 9]
        assert update["context"]["topic"] == "tea"
        again = node.invoke({"messages": chat(9), "context": update["context"]})
        assert again == update

    def test_node_overwrites_the_messages_if_both_keys_are_the_same(self):
        node = self.node(input_messages_key="messages", output_messages_key="messages")
        update = node.invoke({"messages": [SYSTEM, *chat(7)]})
        remove, *shown = update["messages"]
        assert remove.type == "remove"
        state = {"messages": [*shown, *chat(15)[7:]], "context": update["context"]}
        _, *shown = node.invoke(state)["messages"]
        # The system message is still there, and one summary.
        assert texts(shown[:2]) == ["Be brief.", COVERS.format("Summary 2.")]
        assert seqs(shown[2:]) == [13, 14, 15]

    def test_node_reads_states_with_fields(self):
        class State(BaseModel):
            notes: list
            context: dict | None = None

        update = self.node(input_messages_key="notes").invoke(State(notes=chat(9)))
        assert seqs(update["summarized_messages"][1:]) == [7, 8, 9]

    @pytest.mark.parametrize("state", [{}, [], {"messages": None}])
    def test_node_rejects_a_state_without_messages(self, state):
        with pytest.raises(ValueError, match="Missing required field `messages`"):
            self.node().invoke(state)

    def test_node_has_a_name_in_a_graph(self):
        builder = StateGraph(MessagesState)
        assert "summarization" in builder.add_node(self.node()).nodes
        assert "short" in builder.add_node(self.node(name="short")).nodes

    @pytest.mark.parametrize("is_async", [False, True])
    async def test_summary_tokens_are_not_streamed(self, is_async):
        builder = StateGraph(MessagesState)
        builder.add_node(self.node("They said hello."))
        builder.add_edge(START, "summarization")
        graph, said = builder.compile(), {"messages": chat(9)}
        if is_async:
            stream = graph.astream(said, stream_mode="messages")
            pieces = [piece async for piece, _ in stream]
        else:
            pieces = [p for p, _ in graph.stream(said, stream_mode="messages")]
        # LangGraph shows what a node writes.
        assert texts(pieces) == [COVERS.format("They said hello.")]


class TestNothingIsLost:
    async def test_summarised_messages_were_all_read(self, summarise):
        long = [(user if n % 2 else assistant)(n, f"m{n} " * 300) for n in range(1, 40)]
        count = count_tokens_approximately
        options = ones(
            max_tokens=2000,
            max_summary_tokens=200,
            token_counter=count,
            model=summariser(),
        )
        result = await summarise(long, **options)
        requests = options["model"].requests
        read = " ".join(text for request in requests for text in texts(request))
        covered = sorted(map(int, result.running_summary.summarized_message_ids))
        assert covered == list(range(1, covered[-1] + 1))
        assert [read.count(f"m{n} ") for n in covered] == [300] * len(covered)
        assert len(requests) > 1
        assert max(count(request[:-1]) for request in requests) <= 2000
        assert count(result.messages) <= 2000

    async def test_a_message_longer_than_a_request_is_read_in_parts(self, summarise):
        messages = [user(1, "word " * 2000), assistant(2, "a " * 300), user(3)]
        count = count_tokens_approximately
        options = ones(max_tokens=600, max_summary_tokens=500, token_counter=count)
        result = await summarise(messages, **options)
        requests = options["model"].requests
        assert sum(" ".join(texts(r[:-1])).count("word ") for r in requests) >= 1999
        assert max(count(request[:-1]) for request in requests) <= 600
        assert result.running_summary.summarized_message_ids == {"1", "2"}

    async def test_larger_window_of_the_model_means_larger_chunks(self, summarise):
        options = ones(
            max_tokens=600,
            max_summary_tokens=50,
            token_counter=count_tokens_approximately,
            model=model("All.", profile={"max_input_tokens": 100_000}),
        )
        await summarise([user(1, "word " * 2000), assistant(2), user(3)], **options)
        assert len(options["model"].requests) == 1

    async def test_overflow_of_the_summariser_is_read_in_pieces(self, summarise):
        replies = [ContextOverflowError("too long"), *["Part."] * 99]
        options = ones(
            max_tokens=4000,
            token_counter=count_tokens_approximately,
            model=summariser(*replies),
        )
        messages = [user(1, "word " * 4000), assistant(2), user(3)]
        result = await summarise(messages, **options)
        assert result.running_summary.summary == "Part."
        assert len(options["model"].requests) > 4

    async def test_the_newest_user_message_stays(self, summarise):
        window = [*chat(4), user(5, "The question?")]
        for n in range(6, 26, 2):
            window += [assistant(n, "", [f"c{n}"]), tool(n + 1, f"c{n}")]
        result = await summarise(window, **ones())
        summary, question, *rounds = result.messages
        assert question.text == "The question?"
        assert len(result.messages) <= 6
        assert find_faults_of(result.messages) == []
        assert rounds == window[-len(rounds) :]
        # The next call knows what is covered, and shows the question again.
        options = ones(result.running_summary)
        assert (await summarise(window, **options)).messages == result.messages
        given = await summarise(result.messages, **options)
        assert given.messages == result.messages

    async def test_a_newest_message_beyond_the_limit_stays(self, summarise):
        options = ones(max_tokens=50, token_counter=count_tokens_approximately)
        messages = [*chat(4), user(5, "word " * 500)]
        result = await summarise(messages, **options)
        assert result.messages[1:] == messages[4:]

    @pytest.mark.parametrize(
        "reply", [OSError("down"), "", "I'm sorry, but I can't help with that.", None]
    )
    async def test_a_failing_summariser_changes_nothing(self, summarise, reply, caplog):
        calls = [{"name": "f", "args": {}, "id": "1"}]
        reply = AIMessage("", tool_calls=calls) if reply is None else reply
        running = RunningSummary("They met.", {"1", "2"}, "2")
        options = ones(running, model=summariser(reply), max_tokens=4)
        result = await summarise(chat(9), **options)
        assert result.running_summary == running
        assert texts(result.messages[:1]) == [COVERS.format("They met.")]
        assert seqs(result.messages[1:]) == list(range(3, 10))
        assert "compaction failed" in caplog.text
        assert "down" not in caplog.text
        # The next call tries again.
        result = await summarise(chat(9), **options)
        assert result.running_summary.summary == "Summary 2."

    async def test_call_does_not_wait_for_a_hanging_summariser(self, summarise):
        gate = threading.Event()

        class Hanging(type(model())):
            def _generate(self, *args, **kwargs):
                gate.wait(30)
                raise OSError

        options = ones(model=Hanging(), timeout=0.05)
        result = await summarise(chat(9), **options)
        gate.set()
        assert (result.messages, result.running_summary) == (chat(9), None)

    async def test_summarised_messages_may_be_removed(self, summarise):
        first = await summarise(chat(9), **ones())
        running = first.running_summary
        for left in ([1, 2, 3, 4, 5, 7, 8, 9], [4, 7, 8, 9], [7, 8, 9]):
            messages = [each for each in chat(9) if int(each.id) in left]
            result = await summarise(messages, **ones(running))
            assert result.messages == first.messages

    async def test_inserted_message_does_not_count_as_read(self, summarise):
        first = await summarise(chat(9), **ones())
        given = [*chat(3), user(99), *chat(9)[3:]]
        result = await summarise(given, **ones(first.running_summary))
        assert seqs(result.messages[1:]) == [99, 7, 8, 9]

    async def test_second_message_with_a_known_id_does_not_count_as_read(
        self, summarise
    ):
        running = RunningSummary("They met.", {"1", "2"}, "2")
        with pytest.raises(ValueError, match="ID 1 has already"):
            await summarise([user(1), user(1), user(3)], **ones(running))

    async def test_a_prompt_without_a_place_for_the_messages_is_refused(
        self, summarise
    ):
        prompt = ChatPromptTemplate.from_messages([("system", "Summary: {summary}")])
        with pytest.raises(ValueError, match="final_prompt: .*'messages'"):
            await summarise(chat(9), **ones(final_prompt=prompt))


class TestPrompts:
    async def test_the_caller_chooses_all_three(self, summarise):
        options = ones(
            model=summariser("{facts: [tea]}", "{}x"),
            initial_summary_prompt=ChatPromptTemplate.from_messages(
                [("system", 'As {{"json"}}.'), ("placeholder", "{messages}")]
            ),
            existing_summary_prompt=ChatPromptTemplate.from_messages(
                [("user", "Known: {existing_summary}"), ("placeholder", "{messages}")]
            ),
            final_prompt=ChatPromptTemplate.from_messages(
                [("user", "Earlier: {summary}"), ("placeholder", "{messages}")]
            ),
        )
        first = await summarise([SYSTEM, *chat(9)], **options)
        # The prompt has no place for the system message; it stays first.
        assert texts(first.messages[:2]) == ["Be brief.", "Earlier: {facts: [tea]}"]
        options["running_summary"] = first.running_summary
        second = await summarise([*first.messages, *chat(16)[9:]], **options)
        requests = options["model"].requests
        assert requests[0][0].text == 'As {"json"}.'
        assert requests[1][0].text == "Known: {facts: [tea]}"
        assert seqs(requests[1][1:]) == list(range(7, seqs(second.messages[2:])[0]))
        assert texts(second.messages[:2]) == ["Be brief.", "Earlier: {}x"]

    async def test_data_of_a_conversation_is_no_template(self, summarise):
        messages = [user(1, "{summary} {messages}"), *chat(9)[1:]]
        options = ones(model=summariser("{messages} {system_message}"))
        result = await summarise(messages, **options)
        assert options["model"].requests[0][0].text == "{summary} {messages}"
        assert result.messages[0].text == COVERS.format("{messages} {system_message}")


class TestBadThreads:
    """Whatever the thread holds, a provider takes it, and the summariser reads all."""

    CASES = {
        "a result without a call": [user(1), tool(2, "x", "lost"), *chat(9)[2:]],
        "a result before its call": [
            user(1),
            tool(2, "x", "early"),
            assistant(3, "", ["x"]),
            *chat(9)[3:],
        ],
        "a call without a result": [user(1), assistant(2, "", ["x"]), *chat(9)[2:]],
        "a picture": [
            HumanMessage(
                [
                    {"type": "text", "text": "Look:"},
                    {
                        "type": "image_url",
                        "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="},
                    },
                ],
                id="1",
            ),
            *chat(9)[1:],
        ],
    }

    @pytest.mark.parametrize("messages", CASES.values(), ids=CASES)
    async def test_requests_are_always_valid(self, summarise, messages):
        options = ones()
        result = await summarise(messages, **options)
        (request,) = options["model"].requests
        assert find_faults_of(request) == []
        assert find_faults_of(result.messages) == []
        covered = result.running_summary.summarized_message_ids
        assert covered == {str(n) for n in range(1, 7)}
        read = " ".join(texts(request))
        for message in messages[:6]:
            assert message.text in read
        assert "base64" not in str(request)

    def test_an_open_call_at_the_end_waits_for_its_results(self):
        messages = [*chat(9), assistant(10, "", ["x"])]
        result = langmem.summarize_messages(messages, **ones())
        assert result.messages[-1] == messages[-1]


TEXTS = st.sampled_from(["", "a", "tea " * 50, "long " * 400, "思" * 300])
CALL_IDS = st.lists(st.sampled_from("abcd"), min_size=1, max_size=3)
MESSAGES = st.one_of(
    st.builds(lambda text: user(0, text), TEXTS),
    st.builds(lambda text: assistant(0, text), TEXTS),
    st.builds(lambda ids, text: assistant(0, text, ids), CALL_IDS, TEXTS),
    st.builds(lambda id_, text: tool(0, id_, text), st.sampled_from("abcd"), TEXTS),
)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(MESSAGES, min_size=1, max_size=40),
    st.sampled_from([200, 600, 2000]),
    st.booleans(),
)
def test_messages_of_any_history_are_read_or_sent(history, limit, is_overwritten):
    """Each message is numbered in its text; the conversation grows by four a call."""
    history = [
        each.model_copy(update={"id": str(n), "content": f"#{n}# {each.text}"})
        for n, each in enumerate(history, 1)
    ]
    reader = summariser()
    options = {"token_counter": count_tokens, "max_summary_tokens": 50, "model": reader}
    thread, running = [], None
    for start in range(0, len(history), 4):
        thread = [*thread, *history[start : start + 4]]
        result = langmem.summarize_messages(
            thread, running_summary=running, max_tokens=limit, **options
        )
        running = result.running_summary
        sent = set(re.findall(r"#\d+#", " ".join(texts(result.messages))))
        thread = result.messages if is_overwritten else thread
        said = history[: start + 4]
        covered = running.summarized_message_ids if running else set()
        read = set(re.findall(r"#\d+#", str([texts(r) for r in reader.requests])))
        assert {f"#{id_}#" for id_ in covered if id_.isdecimal()} <= read
        # A result without a call can't be sent.
        words = [each for each in said if not isinstance(each, ToolMessage)]
        assert {f"#{m.id}#" for m in words if m.id not in covered} <= sent
        if (asked := find_newest_question(said)) >= 0:
            assert said[asked].text in texts(result.messages)
        is_open = isinstance(said[-1], AIMessage) and said[-1].tool_calls
        if result.messages and not is_open:
            assert find_faults_of(result.messages) == []
        assert all(find_faults_of(request) == [] for request in reader.requests)


async def test_call_runs_inside_an_event_loop():
    # In a notebook there is one, and the function is called without `await`.
    await asyncio.sleep(0)
    result = langmem.summarize_messages(chat(9), **ones())
    assert result.running_summary.summary == "Summary 1."
