"""The stress tests, the tables and the chart, without any other project's memory."""

import re
from functools import partial

import pytest
from langchain_core.messages import HumanMessage

from bench.memory import rules
from bench.memory.chart import Panel, draw
from bench.memory.conversations import LONG_FACT, make_stress
from bench.memory.figures import Figures, Results, list_requests
from bench.memory.meter import Meter
from bench.memory.rules import (
    RULES,
    WRITERS,
    RuleSurvival,
    keep_rules,
)
from bench.memory.stress import PERFECT_TURNS, Survival, count_facts
from bench.memory.systems.windowpane import Windowpane
from bench.memory.table import write_tables
from bench.memory.writers import FACT, make_lossy, write_every_fact
from memory.engine.summaries.facts import missing_identifiers
from memory.engine.tokens import count_text


@pytest.mark.parametrize("fact", ["", LONG_FACT])
def test_turns_state_one_fact_in_a_message_of_the_given_size(fact):
    messages = make_stress(5, 130, fact).messages
    assert {count_text(message.content) for message in messages} == {130}
    facts = [FACT.findall(message.content) for message in messages]
    assert [len(found) for found in facts] == [1, 0] * 5


@pytest.mark.parametrize("fact", ["", LONG_FACT])
def test_facts_are_no_identifiers_that_the_engine_keeps(fact):
    texts = [message.content for message in make_stress(3, 130, fact).messages]
    assert missing_identifiers("Known:", texts) == []


@pytest.mark.parametrize("size", [130, 330])
def test_the_engine_loses_nothing_to_a_perfect_summariser(size):
    meter = Meter(Windowpane(write_every_fact), make_stress(PERFECT_TURNS, size))
    meter.play()
    assert (count_facts(meter), meter.lost) == (PERFECT_TURNS, 0)


def test_a_lossy_summariser_is_the_same_for_the_same_seed():
    request = [HumanMessage(" ".join(f"[fact-{n:03}]" for n in range(200)))]
    one, same, other = (make_lossy(0.9, seed)(request, 256) for seed in (1, 1, 2))
    assert one == same != other
    assert 160 < len(FACT.findall(one)) < 200


def results():
    report = {
        "turns": 10,
        "prompt_tokens_per_turn": 1234.5,
        "largest_prompt": 2000,
        "cacheable_share": 0.5,
        "effective_cost_per_turn": 600.4,
        "blocked_turns": 0,
        "rewrites_median": 1,
        "rewrites_max": 2,
        "never_read": 3,
        "lost": 4,
        "without_user_message": 5,
        "evidence_in_window": 0.25,
        "evidence_reachable": None,
        "newest_in_request": 0.75,
    }
    figures = [
        Figures(
            name,
            {"talks": report},
            {"talks": {"first": ["a1", "b2"], "second": ["c3"]}},
            Survival((0, 1), (300, 302), (90, 92), 99.6),
            {
                writer: RuleSurvival(0.5, 9, n)
                for writer, n in zip(WRITERS, (50, 51, 2), strict=True)
            },
        )
        for name in ("Windowpane", "Other")
    ]
    return Results(figures, {"talks": 2}, {"langmem": "1.0"})


def test_tables_have_a_row_for_each_system_and_a_cell_for_each_title():
    lines = [line for line in write_tables(results()).splitlines() if line[:1] == "|"]
    assert [line.split(" | ")[0] for line in lines if "---" not in line] == [
        "| ",
        "| **Windowpane**",
        "| Other",
    ] * 3
    assert len({line.count("|") for line in lines[:4]}) == 1
    assert "| Other | 0 | 1 | 301 | 91 | 100 |" in lines
    assert "| Other | 9, 50% | 9, 50% | 9, 50% (2) |" in lines


def test_requests_are_listed_by_their_hash():
    lines = [*list_requests(results())]
    assert len(lines) == 6
    assert lines[2] == "Windowpane\ttalks\tsecond\t1\tc3\n"


def test_the_digest_of_a_set_changes_with_any_request():
    (first, _) = results().figures
    digest = first.digest("talks")
    first.hashes["talks"]["second"][0] = "c4"
    assert len(digest) == 8
    assert first.digest("talks") != digest


class TestRules:
    @pytest.fixture(autouse=True)
    def few_compactions(self, monkeypatch):
        monkeypatch.setattr(rules, "COMPACTIONS", 5)

    def test_the_engine_that_keeps_rules_sends_all_to_the_end(self):
        found = keep_rules(partial(Windowpane, keeps_rules=True))
        assert {each.in_last for each in found.values()} == {len(RULES)}
        assert {each.with_all for each in found.values()} == {1.0}
        assert min(each.compactions for each in found.values()) >= 5

    def test_hostile_summary_is_all_that_is_left_without_rules(self):
        found = keep_rules(Windowpane)["hostile"]
        assert found.in_last == 0


def test_the_chart_is_an_image_with_both_themes():
    panel = Panel("Cost", "less is better", [100, 50])
    image = draw(["Windowpane", "A & B"], [panel], ours="Windowpane", title="t")
    bars = re.findall(r'<rect class="([^"]+)".* width="(\d+)"', image)
    assert bars == [("bar ours", "130"), ("bar", "65")]
    assert "A &amp; B" in image
    assert "prefers-color-scheme: dark" in image
