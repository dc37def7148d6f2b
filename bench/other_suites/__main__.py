"""Run the suites of other libraries: `python -m bench.other_suites --langmem DIR …`.

Their tests are never part of this repository. Those of LangChain come with its source
on PyPI; LangMem and Deep Agents publish none there, so a checkout of theirs at the
pinned version is named. Only the import of what is tested changes. The run fails where
a test passes or fails otherwise than `exceptions.toml` says.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from xml.etree import ElementTree

from .. import environments
from . import suites
from .suites import HERE, Suite

ROOT = HERE.parents[1]
ENVIRONMENT = ROOT / ".venv-suites"
REQUIREMENTS = HERE / "requirements.txt"
# Their own settings name plugins that are not needed here.
SETTINGS = (
    "[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\n"
)
OPTIONS = (
    *("-m", "pytest", "-q", "--noconftest", "--timeout=60", "--junit-xml=report.xml"),
    *("-p", "no:langsmith_plugin", "-p", "no:cacheprovider"),
)


def main() -> None:
    known = suites.load()
    parser = argparse.ArgumentParser("python -m bench.other_suites")
    parser.add_argument("--only", choices=known, help="run this suite alone")
    for name, suite in known.items():
        told = f"a checkout of {name} {suite.version}, or an unpacked source"
        parser.add_argument(f"--{name}", type=Path, metavar="DIR", help=told)
    parser.add_argument("--verbose", action="store_true", help="show pytest's output")
    options = parser.parse_args()
    python = environments.make(ENVIRONMENT, REQUIREMENTS)
    is_wrong = False
    for name, suite in known.items():
        if options.only in (None, name):
            folder = getattr(options, name)
            is_wrong |= not report(suite, python, folder, options.verbose)
    sys.exit(is_wrong)


def report(suite: Suite, python: Path, folder: Path | None, verbose: bool) -> bool:
    """Run a suite and print its figures. False: something is not as the table says."""
    with tempfile.TemporaryDirectory() as temporary:
        source = folder or environments.download(
            python, suite.name, suite.version, Path(temporary)
        )
        if not (source := find_library(suite, source)):
            print(f"{suite.name}: not run. Its source on PyPI has no tests; name a ")
            print(f"    checkout of version {suite.version}: --{suite.name} DIR")
            return False
        outcomes = play(suite, python, source, Path(temporary) / "run", verbose)
    passed = sum(outcomes.values())
    print(
        f"{suite.name} {suite.version}: {passed} of {len(outcomes)} pass; of the "
        f"{suite.public} of public parts {suite.public - len(suite.exceptions)}"
    )
    changes = suite.find_changes(outcomes)
    for line in changes:
        print("   ", line)
    return not changes


def find_library(suite: Suite, source: Path) -> Path | None:
    """The folder of the library; None where its tests are not there. Exits for another
    version than the pinned one."""
    for folder in (source, source / suite.folder):
        if (folder / suite.tests[0]).exists():
            told = tomllib.loads((folder / "pyproject.toml").read_text())
            if (version := told["project"]["version"]) != suite.version:
                sys.exit(f"{folder} is of version {version}, expected {suite.version}")
            return folder
    return None


def play(
    suite: Suite, python: Path, source: Path, folder: Path, verbose: bool
) -> dict[str, bool]:
    """Return whether each test passes, in a folder that has only the memory."""
    for name in (*suite.tests, *suite.needs):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / name, folder / name)
    for name in suite.tests:
        text = (folder / name).read_text()
        if f"from {suite.module} import" not in text:
            sys.exit(f"{name} does not import {suite.module}")
        adapted = f"from bench.other_suites.adapters.{suite.name} import"
        text = text.replace(f"from {suite.module} import", adapted)
        (folder / name).write_text(text)
    (folder / "pytest.ini").write_text(SETTINGS)
    for name in ("memory", "bench"):
        (folder / name).symlink_to(ROOT / name)
    shown = None if verbose else subprocess.DEVNULL
    command = (str(python), *OPTIONS, *suite.tests)
    # Of the caller's environment, their tests need no keys and no settings.
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    subprocess.run(command, cwd=folder, env=kept, stdout=shown, check=False)
    return read_report(folder / "report.xml")


def read_report(path: Path) -> dict[str, bool]:
    """Return whether each test passed, by its module, class and name."""
    cases = ElementTree.parse(path).iter("testcase")  # noqa: S314 - pytest's own report
    return {
        f"{case.get('classname', '').partition('.test_')[2]}::{case.get('name')}": (
            len(case.findall("failure")) + len(case.findall("error")) == 0
        )
        for case in cases
    }


if __name__ == "__main__":
    main()
