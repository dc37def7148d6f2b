"""The published examples of other libraries, with nothing but an import changed."""

import json
import re
import sys
from types import SimpleNamespace

import pytest
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage, RemoveMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph

from memory.agents.langchain import SummarizationMiddleware
from memory.agents.langgraph import (
    ContextState,
    build_context,
    load_memory,
    summarize,
)
from memory.engine.compose import to_wire
from memory.engine.plan import plan_compaction
from memory.engine.policy import Policy
from memory.engine.tokens import count_tokens
from tests.fakes.openai_rules import find_faults

from ...fakes import upstream
from ...servers import ROOT
from ..engine.chats import assistant, chat, tool, user
from .agents import model

PAGE = (ROOT / "tests" / "memory" / "agents" / "examples.md").read_text()
BLOCKS = dict(re.findall(r"(?s)<!-- ([\w: ]+) -->\n```python\n(.+?)```", PAGE))
SUMMARISES = re.compile(r"Create a summary|Extend th|\[windowpane:summarise\]")
POEM = "A line of a poem, and one more line that is as long as a line can be. " * 12


@pytest.fixture
def server(monkeypatch):
    """A provider whose model knows what it is sent, and nothing else."""
    for name in ("gpt-4o", "gpt-4o-mini", "gpt-5.2-chat"):
        monkeypatch.setitem(upstream.MODES, name, answer)
    with upstream.Upstream() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
        yield server


def answer(x):
    texts = list(map(upstream.content_of, x.body["messages"]))
    told = re.search(r"(?i)(?:my name is|i'm) (\w+)", " ".join(texts))
    if SUMMARISES.search(texts[0] + texts[-1]):
        x.whole(f"Summary: my name is {told[1]}." if told else "Summary: nothing.")
    elif "my name?" in texts[-1]:
        x.whole(f"Your name is {told[1]}." if told else "I don't know.")
    else:
        x.whole(POEM)


def run(names, *blocks, changes=()):
    """Execute blocks of the page as one program; `changes` are pairs of old and new."""
    for name in blocks:
        code = BLOCKS[name]
        for old, new in changes:
            assert old in code
            code = code.replace(old, new)
        exec(code, names)  # noqa: S102 - the page's own program
    return names


def texts_of(request):
    return list(map(upstream.content_of, request.messages))


class TestLangMem:
    CHANGES = (("langmem.short_term", "memory.agents.langmem"),)

    @pytest.mark.parametrize("block", ["langmem: node", "langmem: function"])
    def test_agent_knows_the_name_after_a_summary(self, server, block):
        names = run({}, block, changes=self.CHANGES)
        state = names["graph"].get_state(names["config"]).values
        assert state["messages"][-1].text == "Your name is bob."
        # The message with the name was no longer sent, the summary was.
        shown = texts_of(server.calls[-1])
        assert not any("hi, my name" in text for text in shown)
        assert (
            shown[0] == "Summary of the conversation so far: Summary: my name is bob."
        )
        # The transcript is whole.
        assert len(state["messages"]) == 8


class Folder:
    """A backend that keeps files in a folder, for the one of Deep Agents."""

    def __init__(self, root):
        self.root = root

    def download_files(self, paths):
        (path,) = map(self._find, paths)
        content = path.read_bytes() if path.exists() else None
        return [SimpleNamespace(content=content, error=None if content else "none")]

    def write(self, file_path, content):
        path = self._find(file_path)
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
        return SimpleNamespace(error=None)

    def _find(self, path):
        return self.root / path.removeprefix("/")


class TestDeepAgents:
    CHANGES = (("deepagents.middleware.summarization", "memory.agents.deepagents"),)

    @pytest.fixture
    def folder(self, monkeypatch, tmp_path):
        """Stands in for packages that are not installed."""
        backends = SimpleNamespace(FilesystemBackend=lambda **_: Folder(tmp_path))
        dotenv = SimpleNamespace(load_dotenv=lambda: None)
        monkeypatch.setitem(sys.modules, "deepagents.backends", backends)
        monkeypatch.setitem(sys.modules, "dotenv", dotenv)
        return tmp_path

    def test_request_has_the_summary_and_the_last_of_eight_messages(
        self, server, folder, capsys
    ):
        names = run({}, "deepagents: demo", changes=self.CHANGES)
        summarised, asked = server.calls
        assert "Suzhou is 25°C" in texts_of(summarised)[-1]
        summary, last = texts_of(asked)
        assert "Summary: " in summary
        assert last == names["messages"][-1].text
        assert last in capsys.readouterr().out
        (file,) = folder.glob("conversation_history/*.md")
        assert file.name in summary
        assert "1013 hPa" in file.read_text()


class TestLangChain:
    CHANGES = (
        ("langchain.agents.middleware", "memory.agents.langchain"),
        # A placeholder for any tools.
        ("[...]", "[]"),
    )

    def test_the_agent_summarises_with_the_smaller_model(self, server):
        agent = run({}, "langchain: agent", changes=self.CHANGES)["agent"]
        thread = [user(1, "my name is bob"), *chat(99, "hello")[1:], user(100)]
        state = agent.invoke({"messages": [*thread, user(101, "what's my name?")]})
        assert len(state["messages"]) == 102
        assert state["messages"][-1].text == "Your name is bob."
        models = [call.body["model"] for call in server.calls]
        assert models == ["gpt-4o-mini", "gpt-4o"]
        summary, *kept, found, asked = texts_of(server.calls[-1])
        assert "my name is bob" in summary
        # At least 20, and no turn is cut in two; then what a search found.
        assert len(kept) == 20
        assert "my name is bob" in found

    def test_request_has_the_summary_and_20_of_51_messages(self):
        thread = make_thread()
        assert len(thread) == 51
        chat_model = model()
        with SummarizationMiddleware(
            chat_model, trigger=("messages", 50), keep=("messages", 20)
        ) as middleware:
            agent = create_agent(chat_model, middleware=[middleware])
            state = agent.invoke({"messages": thread})
        assert len(state["messages"]) == 52
        _, request = chat_model.requests
        assert len(request) == 21
        assert [each.text for each in request[1:]] == [
            each.text for each in thread[31:]
        ]
        assert find_faults(to_wire(request)) == []

    def test_default_prompt_may_be_given(self):
        prompt = run({}, "langchain: prompt")["DEFAULT_SUMMARY_PROMPT"]
        chat_model = model()
        with SummarizationMiddleware(
            chat_model,
            trigger=("messages", 5),
            summary_prompt=prompt,
            keep=("messages", 2),
        ) as middleware:
            agent = create_agent(chat_model, middleware=[middleware])
            agent.invoke({"messages": chat(7)})
        asked, document = chat_model.requests[0]
        assert "Context Extraction Assistant" in asked.text
        assert json.loads(document.text)["messages"][0]["n"] == 1


def make_thread():
    """The 51 messages of the analysis; what it leaves out is filled with turns of two,
    four and five messages, such that one begins 20 from the end."""
    told = iter(["你好，帮我分析一下市场", "再帮我看看竞争对手"])
    thread = []
    for size in [4, 4, *[2] * 9, 5, 4, 4, 4, 5]:
        n = len(thread)
        ids = [f"call-{n}-{each}" for each in range(size - 3)]
        thread.append(user(n, next(told, "那利润情况呢？")))
        if ids:
            thread.append(assistant(n + 1, "", ids))
            thread += [
                tool(n + 2 + place, id_, "市场数据: ...")
                for place, id_ in enumerate(ids)
            ]
        thread.append(assistant(n + size - 1, "根据市场数据..."))
    return [
        *thread,
        user(48, "总结一下"),
        assistant(49, "好的，我来总结..."),
        user(50, "还有什么建议？"),
    ]


class TestTutorial:
    """The chatbot that summarises: at eight messages, of which two are kept."""

    TURNS = ("tutorial: turns 1 to 3", "tutorial: turn 4")

    @pytest.fixture
    def with_nodes(self, server):
        """The tutorial's names, its two functions replaced by the nodes."""
        blocks = ("model", "state", "call_model", "should_continue")
        names = run({}, *[f"tutorial: {block}" for block in blocks])
        policy = Policy(preset="langgraph", recall_tokens=0)

        def call_model(state: ContextState):
            return {"messages": names["model"].invoke(state["context"]["messages"])}

        builder = StateGraph(names["State"])
        builder.add_node("build_context", build_context(policy))
        builder.add_node("conversation", call_model)
        node = summarize(names["model"], policy)
        builder.add_node("summarize_conversation", node)
        builder.add_edge(START, "build_context")
        builder.add_edge("build_context", "conversation")
        builder.add_conditional_edges("conversation", names["should_continue"])
        names["graph"] = builder.compile(checkpointer=InMemorySaver())
        return names

    def test_original_tutorial_loses_the_transcript(self, server):
        names = run({}, *[name for name in BLOCKS if name.startswith("tutorial")])
        state = names["graph"].get_state(names["config"]).values
        assert state["summary"] == "Summary: my name is Lance."
        assert len(state["messages"]) == 2

    def test_tutorial_with_the_nodes_keeps_the_transcript(self, server, with_nodes):
        names = run(with_nodes, self.TURNS[0])
        state = names["graph"].get_state(names["config"]).values
        assert "memory" not in state
        state = run(names, self.TURNS[1])["graph"].get_state(names["config"]).values
        assert len(state["messages"]) == 8
        (block,) = load_memory(state).blocks
        assert (block.first_seq, block.last_seq) == (1, 6)
        asked = {"messages": [HumanMessage("what's my name?")]}
        answer = names["graph"].invoke(asked, names["config"])["messages"][-1]
        assert answer.text == "Your name is Lance."
        # The summary, the two messages that were kept, and the new one.
        summary, *kept = texts_of(server.calls[-1])
        assert "my name is Lance" in summary
        assert [text[:12] for text in kept] == [
            "i like Nick ",
            POEM[:12],
            "what's my na",
        ]


class TestAdvice:
    """Advice of the tutorial, and the policy that follows it."""

    @pytest.fixture
    def names(self):
        return run({"END": END, "RemoveMessage": RemoveMessage}, "tutorial: state")

    def is_due(self, policy, messages):
        return plan_compaction(policy, messages, count_tokens=count_tokens) is not None

    @pytest.mark.parametrize(
        ("block", "trigger", "below", "above"),
        [
            ("by messages", ("messages", 7), chat(6), chat(7)),
            ("by tokens", ("tokens", 1000), chat(6, "a b"), chat(8, "word " * 200)),
        ],
    )
    def test_trigger_fires_at_the_same_time(self, names, block, trigger, below, above):
        should_continue = run(names, f"advice: {block}")["should_continue"]
        policy = Policy(trigger=trigger, keep=("messages", 2))
        for messages, expected in ((below, END), (above, "summarize_conversation")):
            assert should_continue({"messages": messages}) == expected
            assert self.is_due(policy, messages) is (expected != END)

    def test_trigger_fires_by_time(self, names):
        should_continue = run(names, "advice: by time")["should_continue"]
        # No message of LangChain has the field.
        with pytest.raises(AttributeError, match="timestamp"):
            should_continue({"messages": chat(4)})
        policy = Policy(trigger=("age", 86_400), keep=("messages", 2))
        assert self.is_due(policy, chat(4))
        assert not self.is_due(policy, [HumanMessage("no time"), *chat(4)[1:]])

    def test_window_keeps_as_many_messages(self, names):
        removed = run(names | {"state": {"messages": chat(10)}}, "advice: keep four")
        policy = Policy(trigger=("messages", 7), keep=("messages", 4))
        compaction = plan_compaction(policy, chat(10), count_tokens=count_tokens)
        ids = [message.id for message in removed["delete_messages"]]
        assert [message.id for message in compaction.messages] == ids

    def test_important_messages_are_kept(self, names):
        messages = [user(1, "重要: 我对花生过敏"), *chat(8)[1:]]
        names["state"] = {"messages": messages}
        removed = run(names, "advice: keep what is important")["delete_messages"]
        assert "1" not in [message.id for message in removed]
        policy = Policy(preset="langgraph", important=["重要"], recall_tokens=0)
        state = {"messages": messages}
        state |= summarize(model(), policy)(state, {})
        context = build_context(policy)(state, {})["context"]["messages"]
        assert load_memory(state).blocks
        assert sum("我对花生过敏" in message.text for message in context) == 1

    def test_a_thread_may_have_its_own_threshold(self, names):
        should_continue = run(
            names | {"MessagesState": MessagesState}, "advice: a threshold per thread"
        )["should_continue"]

        def choose(state, config):
            least = state.get("summary_threshold", 6) + 1
            return Policy(trigger=("messages", least), keep=("messages", 2))

        for state in ({}, {"summary_threshold": 10}):
            state["messages"] = chat(8)
            made = summarize(model(), choose)(state, {})
            assert bool(made) is (should_continue(state) != END)

    def test_a_summary_may_have_a_form(self, names):
        form = run(names, "advice: a structured summary")["StructuredSummary"]
        policy = Policy(preset="langgraph", profile=form)
        told = form(
            user_info="Lance", topics=["tea"], key_facts=["49ers"], timestamp="now"
        )
        state = {"messages": chat(8)}
        state |= summarize(model(told.model_dump_json()), policy)(state, {})
        assert load_memory(state).data == told.model_dump()

    def test_trigger_fires_by_topic_and_importance(self):
        policy = Policy(
            trigger=[("topic", 0.65), ("important", 1), ("messages", 7)],
            keep=("messages", 2),
            important=["重要"],
        )
        cats = "my cat sleeps all day on the warm sofa"
        goal = "the striker scored twice in yesterday's football final"
        assert not self.is_due(policy, [*chat(2, cats), user(3, f"{cats} again")])
        assert self.is_due(policy, [*chat(4, cats), user(5, goal)])
        assert self.is_due(policy, [user(1, "重要: " + cats), *chat(4, cats)[1:]])
