"""Failed tests are run again alone, and count if they fail again."""

import pytest

from . import unsteady
from .small_suites import run_python

FAILS_ONCE = """
import os, signal, time
from pathlib import Path
import pytest

def once(name):
    seen = Path(name)
    found = seen.exists()
    seen.touch()
    return not found
"""
# Each way to fail, and a test that fails this way once.
ONCE = {
    "fails": "def test_fails(): assert not once('fails')",
    "setup": """
@pytest.fixture
def broken(): assert not once('setup')
def test_setup(broken): pass""",
    "teardown": """
@pytest.fixture
def left():
    yield
    assert not once('teardown')
def test_teardown(left): pass""",
    "both": """
@pytest.fixture
def late():
    yield
    assert not once('late')
def test_both(late): assert not once('both')""",
    "dies": "def test_dies(): once('dies') and os.kill(os.getpid(), signal.SIGKILL)",
    "hangs": """
@pytest.mark.timeout(0.5)
def test_hangs(): once('hangs') and time.sleep(60)""",
}
ALWAYS = "def test_always(): assert 1 == 2"
PASSES = "def test_passes(): pass"


@pytest.fixture
def run_suite(tmp_path):
    """run_suite(*tests) -> the ended pytest and the ended last step, called as
    scripts/test.sh calls them."""
    failures = tmp_path / "failures"
    failures.mkdir()

    def run(*tests, options=("-n", "1"), **env):
        (tmp_path / "test_it.py").write_text("\n".join([FAILS_ONCE, *tests]))
        env = {"TEST_DATABASE": "sqlite", **env}
        noted = {**env, "TEST_FAILURES": str(failures)}
        first = run_python(tmp_path, "pytest", "-q", *options, **noted)
        last = run_python(tmp_path, "tests.unsteady", str(failures), **noted)
        assert not last.stderr, last.stderr
        return first, last

    return run


def test_a_suite_that_passes_has_nothing_to_say(run_suite):
    first, last = run_suite(PASSES)
    assert (first.returncode, last.returncode, last.stdout) == (0, 0, "")


@pytest.mark.parametrize(
    ("ways", "error"),
    [
        # Fixtures are part of it, and so are workers that die.
        (("setup", "teardown", "dies"), "worker 'gw0' crashed while running"),
        (("fails", "both", "hangs"), "Failed: Timeout (>0.5s)"),
    ],
)
def test_suite_lists_a_test_that_passes_alone(run_suite, ways, error):
    first, last = run_suite(PASSES, *map(ONCE.get, ways))
    assert (first.returncode, last.returncode) == (0, 0), first.stdout + last.stdout
    head, *lines = last.stdout.splitlines()
    assert head == "Unsteady: failed, but passed alone:"
    names = {line for line in lines if not line.startswith("   ")}
    assert names == {f"  test_it.py::test_{way} (sqlite)" for way in ways}
    assert error in last.stdout


def test_suite_fails_when_a_test_fails_twice_also_without_workers(run_suite):
    first, last = run_suite(ALWAYS, ONCE["fails"], options=())
    assert (first.returncode, last.returncode) == (0, 1)
    twice, once = last.stdout.split("Unsteady: failed, but passed alone:")
    assert "Failed, and failed again alone:\n  test_it.py::test_always" in twice
    assert "assert 1 == 2" in twice
    assert "test_it.py::test_fails (sqlite)" in once


def test_more_than_three_unsteady_are_red(run_suite):
    first, last = run_suite(*map(ONCE.get, ("fails", "setup", "teardown", "both")))
    assert (first.returncode, last.returncode) == (0, 1)
    assert last.stdout.endswith("More than 3 unsteady tests count as failed.\n")


def test_very_many_are_not_run_again(tmp_path, monkeypatch):
    monkeypatch.setattr(unsteady, "passes_alone", None)
    many = [unsteady.Failure("sqlite", f"test_{number}", "") for number in range(21)]
    assert unsteady.judge(many) == (False, "21 tests failed, which are not run again.")


@pytest.mark.parametrize("options", [(), ("-n", "1")])
def test_suite_fails_at_once_when_a_module_cannot_be_imported(
    run_suite, tmp_path, options
):
    (tmp_path / "test_broken.py").write_text("import missing")
    first, _ = run_suite(ONCE["fails"], options=options)
    assert first.returncode != 0, first.stdout


def test_a_run_that_stops_early_is_red_at_once(run_suite):
    first, _ = run_suite(ONCE["fails"], PASSES, options=["-x"])
    assert first.returncode != 0


def test_a_skipped_test_in_ci_is_red_at_once_beside_one_that_fails_once(run_suite):
    skipped = "def test_skipped(): pytest.skip('why not')"
    first, last = run_suite(ONCE["fails"], skipped, CI="true")
    assert "1 skipped tests count as failed" in first.stdout
    assert (first.returncode, last.returncode) == (1, 0), first.stdout + last.stdout
