import hashlib
import json

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableLambda

from memory.agents.stores import SummarySegment, ThreadMemory
from memory.agents.threads import (
    digest_prefixes,
    find_active,
    find_thread,
    number_messages,
    split_system,
    thread_key,
)

from ..engine.chats import assistant, block, chat, seqs, tool, user


def memory_of(messages, *ends):
    digests = digest_prefixes(messages, ends)
    firsts = [1, *(end + 1 for end in ends)]
    segments = [
        SummarySegment(block(n, first, end), digest)
        for n, (first, end, digest) in enumerate(
            zip(firsts, ends, digests, strict=False)
        )
    ]
    return ThreadMemory(segments=tuple(segments))


def ends(active):
    return [segment.block.last_seq for segment in active]


def test_valid_summaries_are_found():
    messages = chat(10)
    memory = memory_of(messages, 2, 4, 8)
    assert ends(find_active(memory, messages)) == [2, 4, 8]
    assert ends(find_active(memory, [*messages, user(11)])) == [2, 4, 8]


def test_summaries_of_changed_messages_are_left_out():
    messages = chat(10)
    memory = memory_of(messages, 2, 4, 8)
    edited = [*messages[:3], assistant(4, "changed"), *messages[4:]]
    assert ends(find_active(memory, edited)) == [2]
    assert ends(find_active(memory, messages[1:])) == []


def test_summary_beyond_the_last_message_is_left_out():
    messages = chat(10)
    assert ends(find_active(memory_of(messages, 2, 8), messages[:6])) == [2]
    assert find_active(memory_of(messages, 2, 8), []) == ()


def test_summary_after_a_gap_is_left_out():
    messages = chat(10)
    memory = memory_of(messages, 2, 4, 8)
    gap = ThreadMemory(segments=(memory.segments[0], memory.segments[2]))
    assert ends(find_active(gap, messages)) == [2]


def test_messages_need_no_ids_or_unique_ones():
    messages = [HumanMessage("a", id="1"), HumanMessage("b", id="1"), HumanMessage("c")]
    assert seqs(number_messages(messages, 5)) == [5, 6, 7]
    assert len(set(digest_prefixes(messages, [1, 2, 3]))) == 3
    assert [message.id for message in messages] == ["1", "1", None]


def test_digest_covers_all_content_of_messages():
    said = [
        assistant(1, "a"),
        assistant(1, "a", calls=["c"]),
        user(1, "a"),
        user(1, []),
    ]
    said.append(HumanMessage([{"type": "text", "text": "\ud800"}]))
    assert len({digest_prefixes([message], [1])[0] for message in said}) == 5


def test_a_digest_is_that_of_the_messages_as_json():
    texts = ["a", "", '"\\/\n\x01\u2028', "é 我 😀", "\ud800", [], [{"text": "\ud800"}]]
    messages = [kind(text) for text in texts for kind in (HumanMessage, AIMessage)]
    messages += [tool(1, id_, "x") for id_ in ('"', "我")]
    messages.append(assistant(1, "a", calls=["c"]))
    running = hashlib.sha256()
    for message in messages:
        calls = getattr(message, "tool_calls", [])
        answers = getattr(message, "tool_call_id", "")
        parts = [message.type, message.content, calls, answers]
        text = json.dumps(parts, ensure_ascii=False, sort_keys=True)
        running.update(text.encode("utf-8", "surrogatepass") + b"\0")
    assert digest_prefixes(messages, [len(messages)]) == [running.hexdigest()]


def test_system_messages_at_the_start_are_split_off():
    messages = [SystemMessage("a"), user(1), SystemMessage("b")]
    assert split_system(messages) == (messages[:1], messages[1:])
    assert split_system([]) == ([], [])
    assert split_system(messages[:1]) == (messages[:1], [])


def test_thread_without_an_id_is_known_by_its_first_message():
    assert find_thread(chat(2)) == find_thread(chat(4))
    assert find_thread([user(1, "a")]) != find_thread([user(1, "b")])
    assert find_thread([]) == "first:"


def test_agents_inside_a_graph_have_separate_threads():
    def key(namespace, text="a"):
        config = {"configurable": {"thread_id": 1, "checkpoint_ns": namespace}}
        return RunnableLambda(lambda _: find_thread([user(1, text)])).invoke(0, config)

    assert key("") == key("model:1f") == key("model:2e", "b") == thread_key("1")
    inside = key("tools:5d|model:1f")
    assert inside.startswith("thread:1|tools|first:")
    assert inside == key("tools:77|model:2e")
    assert len({inside, key("tools:5d|model:1f", "b"), key("sub:5d|model:1f")}) == 3


@pytest.mark.parametrize("thread_id", ["x" * 201, "a\0b", "\ud800"])
def test_ids_that_a_store_may_refuse_are_hashed(thread_id):
    key = thread_key(thread_id)
    assert len(key) == len("thread:") + 64
    assert key != thread_key(thread_id + "c")


def test_a_digest_is_the_same_in_every_process():
    class Odd:
        pass

    def digest(*numbers):
        odd = {"type": "odd", "set": {*numbers}, "value": Odd(), "bytes": (1, b"2")}
        return digest_prefixes([HumanMessage([odd])], [1])

    # The order of a set depends on the process, here on how it was made.
    assert repr({0, 8}) != repr({8, 0})
    assert digest(0, 8) == digest(8, 0) != digest(0, 9)
