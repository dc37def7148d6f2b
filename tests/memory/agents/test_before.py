"""The time of a compaction: after the answer, or before the call that is due."""

import pytest

from memory.engine.exceptions import PolicyError
from memory.engine.policy import Policy
from memory.engine.tokens import count_tokens

from .agents import Chat, model, summariser


def test_the_call_that_triggers_is_already_short():
    chat = Chat(when="before")
    chat.say("one", "two", "three")
    assert chat.sent[1:] == ["one", "reply 1", "two", "reply 2", "three"]
    assert chat.memory.records == ()
    chat.say("four")
    # At least two of seven stay, and a window begins with a user message.
    assert 'messages="1-4"' in chat.sent[1]
    assert chat.sent[2:] == ["three", "reply 3", "four"]
    assert chat.memory.records[0].trigger == ("messages", 7, 6)


def test_answer_is_not_followed_by_a_summary():
    chat = Chat(when="before")
    chat.say("one", "two", "three")
    assert chat.summariser.requests == []


def test_the_answer_goes_out_when_the_summariser_fails():
    chat = Chat(when="before", summarizer=summariser(*[OSError("down")] * 99))
    messages = chat.say(*map(str, range(6)))
    assert len(messages) == 12
    assert [record.error for record in chat.memory.records] == ["OSError"]


async def test_awaited_call_waits_without_blocking():
    chat = Chat(when="before")
    for text in ("one", "two", "three", "four"):
        await chat.say_async(text)
    assert "Summary 1." in chat.sent[1]


@pytest.mark.parametrize("when", ["after", "before"])
def test_a_thread_that_begins_too_large_is_summarised_before_its_first_call(when):
    chat = Chat(model(profile={"max_input_tokens": 2000}), policy=Policy(), when=when)
    thread = [("user" if n % 2 else "ai", f"{n} " + "word " * 50) for n in range(1, 81)]
    said = {"messages": [*thread, ("user", "And now?")]}
    chat.agent.invoke(said, chat.config)
    sent = chat.model.requests[0]
    assert count_tokens(sent) <= 1900
    blocks = chat.memory.blocks
    window = [each for each in sent if each.text.split()[0].isdecimal()]
    # Each of the 80 is in a summary that read it, or is sent.
    assert (
        sorted({n for numbers in chat.read for n in numbers})[-1] == blocks[-1].last_seq
    )
    assert int(window[0].text.split()[0]) == blocks[-1].last_seq + 1
    assert int(window[-1].text.split()[0]) == 80
    assert not any("left out here" in each.text for each in sent)


@pytest.mark.parametrize("when", ["later", "", None, True])
def test_argument_when_rejects_other_values(when):
    with pytest.raises(PolicyError, match="expected after or before"):
        Chat(when=when)
