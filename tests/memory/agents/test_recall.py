"""Notes from behind the window, and how often a message is read for them."""

from collections import Counter

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from memory.agents import threads
from memory.agents.recall import Recall
from memory.agents.stores import SummarySegment
from memory.engine.compose import SummaryBlock
from memory.engine.search.ranking import Document
from memory.engine.tokens import count_tokens

from .test_long_turns import reading, run
from .upstream import Upstream

ROOM = 500


@pytest.fixture
def read(monkeypatch):
    """Count how often each message was read, by its number."""
    counts = Counter()
    read = Document.from_text

    def count(seq, *args):
        counts[seq] += 1
        return read(seq, *args)

    monkeypatch.setattr(Document, "from_text", count)
    return counts


@pytest.fixture
def recall():
    return Recall(count_tokens)


def talk(count, topic="tea"):
    kinds = [HumanMessage, AIMessage] * count
    return [kind(f"{topic} {n} of many") for n, kind in enumerate(kinds[:count])]


def find(recall, body, cutoff, question="Which tea was number 3?"):
    """The numbers of the notes for a question at the end of the thread."""
    thread = [*body, HumanMessage(question)]
    (digest,) = threads.digest_prefixes(body, [cutoff])
    active = [SummarySegment(SummaryBlock(1, 0, 1, cutoff, "Tea.", 2), digest)]
    return [int(note.id) for note in recall.find_notes(thread, active, len(body), ROOM)]


def test_recall_reads_each_message_of_a_long_turn_once(read):
    upstream = Upstream(reading(16), told=2_000)
    chat = run(upstream, 2_000)
    assert len(chat.memory.records) > 5
    assert set(read.values()) == {1}
    assert max(read) > 20


def test_recall_reads_only_newly_compacted_messages(recall, read):
    body = talk(20)
    found = [find(recall, body, cutoff) for cutoff in (4, 10, 10, 20)]
    assert read == dict.fromkeys(range(1, 21), 1)
    assert found[-1] == find(Recall(count_tokens), body, 20)


def test_recall_reads_edited_messages_again(recall, read):
    body = talk(12)
    find(recall, body, 6)
    body[2] = HumanMessage("coffee")
    assert 3 in find(recall, body, 12, "coffee?")
    assert (read[3], read[12]) == (2, 1)


def test_recall_keeps_threads_apart(recall):
    assert find(recall, talk(8), 4)
    assert find(recall, talk(8, "coal"), 8, "Tea?") == []
    assert find(recall, talk(8), 8) == find(Recall(count_tokens), talk(8), 8)


def test_recall_does_not_find_the_open_question(recall):
    thread = [*talk(6), HumanMessage("Which tea?"), AIMessage("tea"), AIMessage("tea")]
    (digest,) = threads.digest_prefixes(thread, [8])
    active = [SummarySegment(SummaryBlock(1, 0, 1, 8, "Tea.", 2), digest)]
    found = {int(note.id) for note in recall.find_notes(thread, active, 6, ROOM)}
    assert 8 in found
    assert 7 not in found
    # In the next turn it is a message like others.
    assert 7 in find(recall, thread, 9, "Tea?")
