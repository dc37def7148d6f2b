"""The published examples of other libraries, with nothing but an import changed."""

import re

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

from memory.agents.langgraph import (
    ContextState,
    build_context,
    load_memory,
    summarize,
)
from memory.engine.policy import Policy

from ...fakes import upstream
from ...servers import ROOT

PAGE = (ROOT / "tests" / "memory" / "agents" / "examples.md").read_text()
BLOCKS = dict(re.findall(r"(?s)<!-- ([\w: ]+) -->\n```python\n(.+?)```", PAGE))
SUMMARISES = re.compile(r"Create a summary|Extend th|\[windowpane:summarise\]")
POEM = "A line of a poem, and one more line that is as long as a line can be. " * 12


@pytest.fixture
def server(monkeypatch):
    """A provider whose model knows what it is sent, and nothing else."""
    monkeypatch.setitem(upstream.MODES, "gpt-4o", answer)
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


def run(names, *blocks, change=("", "")):
    """Execute blocks of the page as one program, with one import changed."""
    for name in blocks:
        exec(BLOCKS[name].replace(*change), names)  # noqa: S102 - the page's own
    return names


def texts_of(request):
    return list(map(upstream.content_of, request.messages))


class TestLangMem:
    CHANGE = ("langmem.short_term", "memory.agents.langmem")

    @pytest.mark.parametrize("block", ["langmem: node", "langmem: function"])
    def test_it_still_knows_the_name_after_a_summary(self, server, block):
        names = run({}, block, change=self.CHANGE)
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

    def test_as_it_is_the_transcript_is_gone(self, server):
        names = run({}, *[name for name in BLOCKS if name.startswith("tutorial")])
        state = names["graph"].get_state(names["config"]).values
        assert state["summary"] == "Summary: my name is Lance."
        assert len(state["messages"]) == 2

    def test_with_the_nodes_it_stays(self, server, with_nodes):
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
