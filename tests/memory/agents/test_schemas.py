"""`schema=`: summaries of agents' threads in the form of a caller's class."""

import json
from datetime import UTC, datetime

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableLambda
from pydantic import BaseModel

from memory.agents.stores import ThreadMemory
from memory.engine.exceptions import PolicyError
from memory.engine.policy import Policy

from .agents import Chat, model


class Fact(BaseModel):
    at: datetime
    text: str


class Notes(BaseModel):
    user_info: str
    key_facts: list[Fact] = []


def notes(info, *facts):
    at = datetime(2026, 5, 7, 10, 30, tzinfo=UTC)
    return Notes(user_info=info, key_facts=[Fact(at=at, text=text) for text in facts])


def test_a_summary_is_kept_as_data_and_sent_as_text():
    chat = Chat(schema=Notes, summarizer=model(notes("Lance", "a").model_dump_json()))
    chat.say("one", "two", "three", "four")
    _, summary, *window = chat.sent
    assert "User info: Lance\nKey facts:\n- [2026-05-07 10:30] a</summary>" in summary
    assert len(window) == 3
    record = chat.memory.records[0]
    assert record.structured["key_facts"][0]["text"] == "a"
    assert "YYYY-MM-DDThh:mm" in chat.summariser.requests[0][0].text
    stored = json.loads(json.dumps(chat.memory.dump()))
    assert ThreadMemory.load(stored).data == chat.memory.data == record.structured


def test_the_data_of_all_levels_is_one():
    policy = Policy(
        trigger=("messages", 4),
        keep=("messages", 2),
        profile=Notes,
        summary_budget=10,
        fan_in=2,
    )
    replies = [notes(f"v{n}", f"fact {n}").model_dump_json() for n in range(1, 20)]
    chat = Chat(policy=policy, summarizer=model(*replies))
    chat.say(*map(str, range(8)))
    assert max(record.level for record in chat.memory.records) >= 1
    versions = [block.version for block in chat.memory.blocks]
    assert len(versions) > 1
    facts = [fact["text"] for fact in chat.memory.data["key_facts"]]
    assert facts == [f"fact {version}" for version in versions]
    assert chat.memory.data["user_info"] == f"v{versions[-1]}"


def test_a_summary_in_another_form_is_kept_as_text():
    chat = Chat(schema=Notes, summarizer=model("He is Lance.", "Still Lance."))
    chat.say("one", "two", "three")
    assert [block.text for block in chat.memory.blocks] == ["Still Lance."]
    assert chat.memory.data == {}


@pytest.mark.parametrize("wrap", [lambda f: f, RunnableLambda])
def test_a_function_may_return_an_object(wrap):
    chat = Chat(summarizer=wrap(lambda messages: notes("Lance", "a")))
    chat.say("one", "two", "three")
    assert chat.memory.data["user_info"] == "Lance"
    assert chat.memory.blocks[0].text.startswith("User info: Lance\n")


def test_an_object_that_says_nothing_is_no_summary():
    chat = Chat(summarizer=lambda messages: notes(" "))
    chat.say("one", "two", "three")
    assert chat.memory.records[0].error == "EmptySummary"


def test_texts_that_no_database_holds_do_not_lose_the_memory():
    chat = Chat(summarizer=lambda messages: "A\0B\ud800 talked.")
    chat.agent.invoke({"messages": [HumanMessage("one")]}, chat.config)
    chat.say("two", "three")
    stored = json.loads(json.dumps(chat.memory.dump(), ensure_ascii=False).encode())
    (block,) = ThreadMemory.load(stored).blocks
    assert block.text == "A\ufffdB\ufffd talked."


def test_a_policy_and_a_schema_are_two_words_for_one_thing():
    with pytest.raises(PolicyError, match="without trigger"):
        Chat(policy=Policy(), schema=Notes)
    with pytest.raises(PolicyError, match="profile"):
        Chat(schema=dict)
