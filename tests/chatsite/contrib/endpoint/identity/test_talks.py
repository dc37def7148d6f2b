"""Talks that clients change as they send them, by the generator of the benchmark."""

from collections import Counter

import pytest

from bench.endpoint.identity import run_talks
from bench.endpoint.in_memory import MemoryTarget
from bench.endpoint.talks import ACTS, HABITS, HEADERS

# Every habit with every header on every wire, twice.
TALKS = 240


@pytest.fixture(scope="module")
def judge():
    return run_talks(MemoryTarget(), TALKS, people=2)


def test_no_request_is_attached_to_another_conversation(judge):
    assert judge.wrong == []


def test_what_goes_on_is_recognised_without_a_header(judge):
    counts = judge.counts["header", "no header"]
    assert counts["wanted"] > 500
    assert counts["known"] / counts["wanted"] >= 0.98


@pytest.mark.parametrize("header", ["own header", "shared header"])
def test_what_goes_on_is_recognised_with_a_header(judge, header):
    counts = judge.counts["header", header]
    assert counts["wanted"] > 500
    assert counts["known"] / counts["wanted"] >= 0.99


def test_all_that_clients_change_is_played(judge):
    played = {name for kind, name in judge.counts if kind in ("habit", "act", "header")}
    assert played >= {*HABITS, *ACTS, *HEADERS}


def test_a_server_that_merges_is_found_out():
    class Merging(MemoryTarget):
        def send(self, person, request, reply):
            answer = super().send(person, request, reply)
            is_later = answer.lineage != "single"
            return answer if is_later else answer.__class__("c0", "continued", reply)

    judge = run_talks(Merging(), 3, people=1)
    assert judge.wrong


def test_a_server_that_splits_is_found_out():
    class Splitting(MemoryTarget):
        count = Counter()

        def send(self, person, request, reply):
            self.count["requests"] += 1
            name = f"c{self.count['requests']}"
            return super().send(person, request, reply).__class__(name, "new", reply)

    judge = run_talks(Splitting(), 3, people=1)
    assert judge.missed
    assert not judge.wrong
