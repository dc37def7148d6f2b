"""Tests that fail once: each that failed is run again when nothing else runs.

A recorder notes in the folder TEST_FAILURES what failed, so that the exit code of that
run of pytest only speaks of everything else: collection, crashes of pytest, skipped
tests. `python -m tests.unsteady FOLDER` runs the noted tests again, one at a time, and
says which failed twice and which are unsteady. scripts/test.sh puts the two together.
"""

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

# More of these, and something else is wrong than a busy machine.
MOST_UNSTEADY = 3
# So many have a common cause, which no second run would show better.
MOST_RERUN = 20
ERROR_LINES = 5


@dataclass(frozen=True)
class Failure:
    database: str
    nodeid: str
    error: str

    def __str__(self) -> str:
        error = "\n    ".join(self.error.splitlines())
        return f"  {self.nodeid} ({self.database})\n    {error}"


class Recorder:
    """A plugin of the process that sees all reports, also of workers that died."""

    def __init__(self, folder: Path, database: str) -> None:
        self.path = folder / f"{database}-{os.getpid()}"
        self.database = database
        self.failed: set[str] = set()
        self.is_complete = True

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.is_complete = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        # A test can fail, and then its fixtures as well.
        if report.failed and report.nodeid not in self.failed:
            self.failed.add(report.nodeid)
            failure = Failure(self.database, report.nodeid, describe(report))
            with self.path.open("a") as file:
                file.write(json.dumps(asdict(failure)) + "\n")

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Leave what failed to the second run. Others may still count against this."""
        stopped = session.shouldfail or session.shouldstop
        is_only_tests = session.exitstatus == pytest.ExitCode.TESTS_FAILED
        if is_only_tests and self.failed and self.is_complete and not stopped:
            session.exitstatus = pytest.ExitCode.OK


def describe(report: pytest.TestReport) -> str:
    """Describe a failure in a few lines; all of it is in the output of its run."""
    if crash := getattr(report.longrepr, "reprcrash", None):
        lines = f"{crash.path}:{crash.lineno}: {crash.message}".splitlines()
        return "\n".join(lines[:ERROR_LINES])
    return "\n".join(report.longreprtext.strip().splitlines()[-ERROR_LINES:])


def read(folder: Path) -> list[Failure]:
    lines = [line for path in sorted(folder.iterdir()) for line in path.open()]
    return [Failure(**json.loads(line)) for line in lines]


def passes_alone(failure: Failure) -> bool:
    """Run it again. Its output is shown if it fails again."""
    command = [sys.executable, "-m", "pytest", "-q", "-o", "timeout=480"]
    # Without a folder for failures: a run that notes them ends well all the same. And
    # its first run is counted already.
    noting = ("TEST_FAILURES", "TEST_TOTALS")
    env = {name: os.environ[name] for name in os.environ if name not in noting}
    done = subprocess.run(
        [*command, failure.nodeid],
        env={**env, "TEST_DATABASE": failure.database},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.stdout.write(done.stdout)
    return done.returncode == 0


def judge(failures: list[Failure]) -> tuple[bool, str]:
    """Return whether the suite counts as passed, and the words about it."""
    if len(failures) > MOST_RERUN:
        return False, f"{len(failures)} tests failed, which are not run again."
    unsteady = [each for each in failures if passes_alone(each)]
    twice = [each for each in failures if each not in unsteady]
    lines = []
    if twice:
        lines += ["Failed, and failed again alone:", *map(str, twice)]
    if unsteady:
        lines += ["Unsteady: failed, but passed alone:", *map(str, unsteady)]
    if len(unsteady) > MOST_UNSTEADY:
        lines.append(f"More than {MOST_UNSTEADY} unsteady tests count as failed.")
    return not twice and len(unsteady) <= MOST_UNSTEADY, "\n".join(lines)


def main(folder: str) -> int:
    has_passed, text = judge(read(Path(folder)))
    if text:
        sys.stdout.write(f"{text}\n")
    return 0 if has_passed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
