"""The tiers of the suite: each test is run by one command, and none by two."""

import os
import re
import subprocess
import sys
from itertools import product

import pytest
from _pytest.mark.expression import Expression

from . import streams, totals
from .servers import ROOT

LISTED = (
    *(*streams.POSTGRESQL, *streams.SLOW, *streams.WEEKLY),
    *(*streams.SMOKE, *streams.CONTRIB, *streams.RANDOM),
)
SCRIPT = (ROOT / "scripts" / "test.sh").read_text()
RUNS = re.findall(r'^  run(?:_on_two)? (\w+) "([^"]+)" "\$@"$', SCRIPT, re.M)


def count_runs(database, marks):
    """Return how many runs of scripts/test.sh take a test with these marks."""
    return sum(
        Expression.compile(expression).evaluate(lambda name, **_: name in marks)
        for place, expression in RUNS
        if place == database
    )


def test_each_kind_of_test_is_in_one_run():
    assert len(RUNS) == len(re.findall(r"^  run(?:_on_two)? ", SCRIPT, re.M)) == 12
    for tier, *kinds in product(streams.TIERS, *[(True, False)] * 3):
        named = zip(("browser", "fault", "slow"), kinds, strict=True)
        marks = {tier, *(name for name, has_it in named if has_it)}
        assert count_runs("sqlite", marks) == 1, marks
        if tier != "smoke" and "browser" not in marks:
            assert count_runs("postgresql", {*marks, "postgresql"}) == 1, marks
        assert count_runs("postgresql", marks) == 0, marks


def test_weekly_tests_take_all_rounds():
    weekly = SCRIPT.partition("\nweekly() {")[2].partition("\n}")[0]
    _, _, every = weekly.partition("export TEST_ROUNDS=all\n")
    runs = re.findall(r'^  run_on_two (\w+) "([^"]+)" ', every, re.M)
    assert runs == [("sqlite", "random"), ("postgresql", "random and postgresql")]
    marks = {"postgresql", "random"}
    for tier in ("first", "rest"):
        # In the other tiers they run as well.
        assert count_runs("sqlite", {tier, "random"}) == 2
        assert count_runs("postgresql", {tier, *marks}) == 2


@pytest.mark.parametrize(("set_to", "taken"), [("all", 300), ("", 180)])
def test_rounds_are_those_of_the_run(set_to, taken):
    program = "from tests import rounds; print(rounds.choose(180, 300))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "TEST_ROUNDS": set_to},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) == taken


def test_a_test_that_ran_twice_or_never_is_named():
    run = {"python": "{}.{}".format(*totals.sys.version_info), "database": "sqlite"}
    first, again = {**run, "ran": ["a", "b"]}, {**run, "ran": ["b"]}
    newest = {**run, "python": "4.0", "ran": ["a", "b"]}
    wrong = totals.judge([first, again, newest], {"sqlite": ["a", "b", "c"]})
    assert [each.split(": ")[1] for each in wrong] == ["b", "c"]
    assert "twice" in wrong[0]
    assert "never" in wrong[1]
    assert totals.judge([first, newest], {"sqlite": ["a"], "postgresql": []}) == []


def test_every_name_in_the_lists_of_runs_is_there():
    names = {name.partition("::")[0] for name in LISTED}
    assert [each for each in names if not (ROOT / "tests" / each).exists()] == []


@pytest.mark.parametrize(
    ("marks", "read"),
    [
        ("fault", ["faults/test_clock.py"]),
        ("browser and not fault", ["browser/test_page.py"]),
        (
            "postgresql and not browser and not slow",
            [
                "faults/test_clock.py",
                "memory/test_audit.py",
                "memory/test_sql.py",
                "deploy/test_proxy.py",
            ],
        ),
        ("first and postgresql", ["memory/test_audit.py", "memory/test_sql.py"]),
        ("first", ["memory/test_audit.py", "memory/test_sql.py", "test_docs.py"]),
        ("weekly", []),
        # Everything else is looked for everywhere.
        ("fault or browser", None),
        ("not browser and not fault", None),
        ("", None),
    ],
)
def test_a_run_reads_the_files_that_can_have_its_tests(marks, read):
    files = ["faults/test_clock.py", "browser/test_page.py", "memory/test_audit.py"]
    files += ["memory/test_sql.py", "deploy/test_proxy.py", "test_docs.py"]
    found = [name for name in files if streams.can_have(streams.TESTS / name, marks)]
    assert found == (files if read is None else read)


def test_a_mark_outside_of_its_files_is_an_error(request):
    """The run of that mark would not find the test."""
    parent = request.node.parent
    item = pytest.Function.from_parent(parent, name="test_x", callobj=count_runs)
    item.add_marker("fault")
    with pytest.raises(pytest.UsageError, match="test_x has the mark 'fault'"):
        streams.mark(item, "sqlite")
