"""The table of the other libraries' tests: what a run says, and what the page shows."""

import sys

import pytest

from bench.other_suites import __main__ as command
from bench.other_suites import suites

from .servers import ROOT

TESTS = """
from langmem.short_term.summarization import summarize_messages


def test_passes():
    assert summarize_messages.__module__.startswith("memory.agents.langmem")


class TestIt:
    def test_fails(self):
        assert summarize_messages is None
"""
RUN = {"short::test_passes": True, "short.TestIt::test_fails": False}


def make(**changes):
    values = {
        "name": "langmem",
        "version": "1.0",
        "module": "langmem.short_term.summarization",
        "folder": "libs/it",
        "tests": ["tests/test_short.py"],
        "needs": [],
        "total": 2,
        "passing": 1,
        "private": [],
        "exceptions": {"short.TestIt::test_fails": "it is another one"},
    }
    return suites.Suite(**values | changes)


def test_the_page_shows_the_table():
    page = (ROOT / "memory" / "agents" / "README.md").read_text()
    shown = page.split("<!-- suites -->\n\n")[1].split("\n<!-- end of suites -->")[0]
    assert shown == suites.describe(suites.load())


def test_the_table_is_complete():
    for suite in suites.load().values():
        listed = [*suite.private, *suite.exceptions]
        assert len(set(listed)) == len(listed), suite.name
        assert all(suite.exceptions.values())
        assert suite.public - len(suite.exceptions) <= suite.passing <= suite.total


def test_the_pins_are_those_of_the_environment():
    pinned = (ROOT / "bench" / "other_suites" / "requirements.txt").read_text()
    for suite in suites.load().values():
        assert f"{suite.name}=={suite.version}\n" in pinned


@pytest.mark.parametrize(
    ("changes", "run", "told"),
    [
        ({}, RUN, []),
        (
            {"exceptions": {}},
            RUN,
            ["fails without an exception: short.TestIt::test_fails"],
        ),
        (
            {},
            dict.fromkeys(RUN, True),
            [
                "passes as an exception: short.TestIt::test_fails",
                "passing: 2, expected 1",
            ],
        ),
        (
            {},
            {"short::test_passes": True},
            ["is not there: short.TestIt::test_fails", "tests: 1, expected 2"],
        ),
        # Either may come of a private one, but their number is held.
        ({"exceptions": {}, "private": ["short.TestIt::test_fails"]}, RUN, []),
    ],
)
def test_a_run_is_held_against_it(changes, run, told):
    assert make(**changes).find_changes(run) == told


class TestRun:
    @pytest.fixture
    def checkout(self, tmp_path):
        """Return a checkout of a library in a folder of a larger repository."""
        folder = tmp_path / "checkout" / "libs" / "it"
        (folder / "tests").mkdir(parents=True)
        (folder / "tests" / "test_short.py").write_text(TESTS)
        (folder / "pyproject.toml").write_text('[project]\nversion = "1.0"\n')
        return tmp_path / "checkout"

    def test_import_is_the_only_change(self, checkout, tmp_path):
        source = command.find_library(make(), checkout)
        assert source == checkout / "libs" / "it"
        assert (
            command.play(make(), sys.executable, source, tmp_path / "run", True) == RUN
        )
        assert (source / "tests" / "test_short.py").read_text() == TESTS

    def test_a_report_says_what_is_not_as_expected(self, checkout, capsys):
        assert command.report(make(), sys.executable, checkout, False)
        assert "langmem 1.0: 1 of 2 pass" in capsys.readouterr().out
        assert not command.report(make(total=3), sys.executable, checkout, False)
        assert "tests: 2, expected 3" in capsys.readouterr().out

    def test_different_version_is_refused(self, checkout):
        with pytest.raises(SystemExit, match="is of version 1.0, expected 2.0"):
            command.find_library(make(version="2.0"), checkout)

    def test_a_source_without_tests_is_not_taken_for_passing(self, tmp_path, capsys):
        assert not command.report(make(), sys.executable, tmp_path, False)
        assert "not run" in capsys.readouterr().out
