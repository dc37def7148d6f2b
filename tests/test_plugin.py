"""The rules of a test run itself."""

from functools import partial

import pytest

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
def test_suite_deselects_the_other_database_and_fails_on_skips_in_ci(
    run_suite, database, ci, code
):
    done = run_suite(CI=ci, TEST_DATABASE=database)
    assert f"PASSED test_small.py::test_of_{database}" in done.stdout
    assert "2 passed, 1 skipped, 1 deselected" in done.stdout
    assert done.returncode == code, done.stdout + done.stderr
    assert ("1 skipped tests count as failed" in done.stdout) is bool(ci)


def test_unknown_database_is_refused(run_suite):
    done = run_suite(TEST_DATABASE="oracle")
    assert done.returncode != 0
    assert "TEST_DATABASE is 'oracle'" in done.stderr


def test_keys_are_hidden_from_the_tests(settings):
    assert (settings.OPENAI_API_KEY, settings.OPENAI_BASE_URL) == ("", "")
