"""A long turn of this project's middleware in bench.rounds, without other libraries."""

import pytest
from langchain_core.messages import ToolMessage

from bench.rounds.play import Agent, Turn, make_windowpane, play
from bench.rounds.table import SIZES, write_table


@pytest.mark.parametrize("chars", [50, 5_000])
def test_windowpane_holds_the_window_and_keeps_every_fact(chars):
    turn = play(make_windowpane, window=2_000, chars=chars, rounds=9)
    assert turn == Turn(10, 0, 0, 0, 0, 0, turn.largest, turn.summaries, 9)
    assert 0 < turn.largest <= 0.95
    assert (turn.summaries > 0) == (chars > 50)


def test_bare_agent_is_measured():
    class Graph:
        """Sends the last message only, and then fails."""

        def __init__(self, model):
            self.model = model

        def invoke(self, state, config):
            self.model.invoke([ToolMessage("word " * 9_000, tool_call_id="a")])
            raise OSError("down")

    def make(models, tools, window):
        return Agent(Graph(models[0]))

    turn = play(make, window=2_000, chars=50)
    assert (turn.requests, turn.over_limit, turn.over_window) == (1, 1, 1)
    assert (turn.refused, turn.without_question, turn.facts) == (1, 1, 0)
    assert turn.error == "OSError"


def test_the_table_has_a_row_for_each_window_and_contestant():
    turn = Turn(61, 1, 0, 2, 0, 3, 0.954, 400, 60)
    results = {(2_000, "Windowpane"): [turn] * 5, (6_000, "Other"): [turn] * 5}
    lines = write_table(results, {"langmem": "1.0"}).splitlines()
    assert lines[0] == "Measured with langmem 1.0."
    cells = "| 305 | 5 | 0 | 95% | 10 | 0 | 15 | 2,000 | 60 / 60 / 60 / 60 / 60 |"
    assert lines[4:] == [
        f"| 2,000 | **Windowpane** {cells}",
        f"| 6,000 | Other {cells}",
    ]
    assert len({line.count("|") for line in lines[2:]}) == 1
    assert len(SIZES) == 5
