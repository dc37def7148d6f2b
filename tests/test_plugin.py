"""The rules of a test run itself."""

from functools import partial

import pytest

from . import streams
from .servers import ROOT
from .small_suites import run_python

SUITE = """
import pytest

@pytest.mark.skip(reason="because")
def test_skipped(): pass

def test_passed(): pass

@pytest.mark.database("sqlite")
def test_of_sqlite(): pass

@pytest.mark.database("postgresql")
def test_of_postgresql(): pass
"""


@pytest.fixture
def run_suite(tmp_path):
    """Runs a small suite by the rules of this one; the finished process."""
    (tmp_path / "test_small.py").write_text(SUITE)
    return partial(run_python, tmp_path, "pytest", "-q", "-rA")


# Each run shows two rules.
@pytest.mark.parametrize(
    ("database", "ci", "code"), [("sqlite", "true", 1), ("postgresql", "", 0)]
)
def test_it_leaves_out_what_needs_the_other_database_and_lets_only_people_skip(
    run_suite, database, ci, code
):
    done = run_suite(CI=ci, TEST_DATABASE=database)
    assert f"PASSED test_small.py::test_of_{database}" in done.stdout
    assert "2 passed, 1 skipped, 1 deselected" in done.stdout
    assert done.returncode == code, done.stdout + done.stderr
    assert ("1 skipped tests count as failed" in done.stdout) is bool(ci)


def test_it_refuses_an_unknown_database(run_suite):
    done = run_suite(TEST_DATABASE="oracle")
    assert done.returncode != 0
    assert "TEST_DATABASE is 'oracle'" in done.stderr


def test_it_leaves_no_key_to_the_tests(settings):
    assert (settings.OPENAI_API_KEY, settings.OPENAI_BASE_URL) == ("", "")


def test_every_name_in_the_lists_of_runs_is_there():
    names = {name.partition("::")[0] for name in streams.POSTGRESQL + streams.SLOW}
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
        # Whatever else somebody asks for is looked for everywhere.
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
    item = pytest.Function.from_parent(parent, name="test_x", callobj=run_python)
    item.add_marker("fault")
    with pytest.raises(pytest.UsageError, match="test_x has the mark 'fault'"):
        streams.mark(item)
