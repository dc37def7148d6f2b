"""Triggers that read words and the strategy "window" in an agent, by its policy."""

import pytest

from memory.engine.policy import Policy

from .agents import Chat

WINDOW = Policy(strategy="window", trigger=("messages", 6), keep=("messages", 2))
TOPIC = Policy(trigger=("topic", 0.8), keep=("turns", 1), recall_tokens=0)
TRIP = (
    "Which temples in Kyoto should we see in April?",
    "Are these temples in Kyoto full in April, should we book?",
    "Should we book the temples in Kyoto for April?",
)
LAPTOP = "My laptop crashes whenever it compiles large programs."


@pytest.mark.parametrize("by_function", [False, True])
def test_trimmed_messages_are_not_summarised(by_function):
    asked = []
    options = {"summarizer": asked.append} if by_function else {}
    chat = Chat(policy=WINDOW, **options)
    chat.say("My cat is Mimi.", "two", "three", "four")
    assert not asked
    assert by_function or chat.summariser.requests == []
    (record,) = chat.memory.records
    assert (record.first_seq, record.last_seq, record.text) == (1, 4, "")
    assert chat.sent == ["Be brief.", "three", "reply 3", "four"]


def test_trimmed_messages_are_recalled():
    chat = Chat(policy=WINDOW)
    chat.say("My cat is called Mimi.", "two", "three", "What is my cat called?")
    assert any("My cat is called Mimi." in text for text in chat.sent[1:-1])


@pytest.mark.parametrize(("when", "fires_at"), [("after", 5), ("before", 4)])
def test_new_topic_triggers_a_summary(when, fires_at):
    chat = Chat(policy=TOPIC, when=when)
    chat.say(*TRIP)
    assert chat.memory.records == ()
    chat.say(LAPTOP, "Is the laptop too old to compile such large programs?")
    sent = [" ".join(m.text for m in request) for request in chat.model.requests]
    assert ["<summary" in text for text in sent] == [n >= fires_at for n in range(1, 6)]
    assert chat.memory.records[0].trigger[0] == "topic"
    assert chat.memory.records[0].last_seq == 6


def test_important_messages_trigger_a_summary_and_stay():
    policy = Policy(
        trigger=("important", 2), keep=("messages", 2), important=["budget"]
    )
    chat = Chat(policy=policy)
    chat.say("My budget is 1,200.", "hello", "The budget is 900 now.", "and now?")
    assert chat.memory.records[0].trigger == ("important", 2, 2)
    assert any("<pinned>" in text and "1,200" in text for text in chat.sent)
