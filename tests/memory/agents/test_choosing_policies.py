"""`policy` as a function of the agent's state and the config of its run."""

from langchain.agents import AgentState, create_agent
from langgraph.checkpoint.memory import InMemorySaver

from memory.agents.middleware import WindowpaneMiddleware
from memory.engine.policy import Policy

from .agents import Chat, model, summariser


class State(AgentState):
    summary_threshold: int


def by_state(state, config):
    """Each thread has its own threshold, and each run may keep more."""
    keep = config["configurable"].get("keep", 2)
    trigger = ("messages", state.get("summary_threshold", 6))
    return Policy(trigger=trigger, keep=("messages", keep))


def make_agent(policy):
    memory = WindowpaneMiddleware(
        model(), policy=policy, summarizer=summariser(), background=False
    )
    agent = create_agent(
        model(), middleware=[memory], state_schema=State, checkpointer=InMemorySaver()
    )
    return agent, memory


def ranges(memory, thread):
    return [(r.first_seq, r.last_seq) for r in memory.memory(thread).records]


def test_each_thread_has_the_policy_of_its_state():
    agent, memory = make_agent(by_state)
    for thread, threshold in (("1", 4), ("2", 10)):
        for number in range(4):
            said = {"messages": [("user", str(number))]}
            said["summary_threshold"] = threshold
            agent.invoke(said, {"configurable": {"thread_id": thread}})
    assert ranges(memory, "1") == [(1, 2), (3, 4), (5, 6)]
    assert ranges(memory, "2") == []


async def test_each_run_has_the_policy_of_its_config():
    agent, memory = make_agent(by_state)
    for number in range(3):
        config = {"configurable": {"thread_id": "1", "keep": 4}}
        await agent.ainvoke({"messages": [("user", str(number))]}, config)
    assert ranges(memory, "1") == [(1, 2)]


def test_a_window_of_a_chosen_policy_is_a_ceiling():
    policy = Policy(context_window=1000, recall_tokens=0)
    chat = Chat(policy=lambda state, config: policy)
    chat.say(*["word " * 300] * 4)
    assert len(chat.sent) < 9
    assert chat.memory.records


def test_an_answer_needs_no_policy(caplog):
    for wrong in (lambda state, config: 1 / 0, lambda state, config: {"keep": 2}):
        chat = Chat(policy=wrong)
        assert chat.say("hello")[-1].text == "reply 1"
        assert "cannot be chosen" in caplog.text
        caplog.clear()
