"""The suites, their pinned versions and the tests that do not pass, with the reasons.

`exceptions.toml` is the one place that says so; the run and the page of
memory/agents follow it.
"""

import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Suite:
    """The tests of a library. `module` is what they are about, and `needs` are files
    that they use; `folder` is that of the library in a checkout.

    Of all that are in `tests`, `passing` pass. Those of `private` look at methods and
    attributes with an underscore, and either may come of them. `exceptions` has the
    reason for each other one that does not pass.
    """

    name: str
    version: str
    module: str
    folder: str
    tests: list[str]
    needs: list[str]
    total: int
    passing: int
    private: list[str]
    exceptions: dict[str, str]

    @property
    def public(self) -> int:
        return self.total - len(self.private)

    def find_changes(self, outcomes: Mapping[str, bool]) -> list[str]:
        """Return the results of a run that the table lacks."""
        failed = {name for name, passed in outcomes.items() if not passed}
        failed -= set(self.private)
        known = set(self.exceptions)
        gone = {*known, *self.private} - set(outcomes)
        found = {"tests": (len(outcomes), self.total)}
        found["passing"] = (sum(outcomes.values()), self.passing)
        return [
            *(f"fails without an exception: {name}" for name in sorted(failed - known)),
            *(
                f"passes as an exception: {name}"
                for name in sorted(known - failed - gone)
            ),
            *(f"is not there: {name}" for name in sorted(gone)),
            *(f"{what}: {n}, expected {m}" for what, (n, m) in found.items() if n != m),
        ]


def load() -> dict[str, Suite]:
    table = tomllib.loads((HERE / "exceptions.toml").read_text())
    return {name: Suite(name=name, **read(values)) for name, values in table.items()}


def read(values: dict[str, Any]) -> dict[str, Any]:
    """The values of a suite, with the reason for each single test."""
    groups = values.pop("exception", [])
    reasons = {test: group["why"] for group in groups for test in group["tests"]}
    return values | {"exceptions": reasons}


def describe(suites: Mapping[str, Suite]) -> str:
    """The figures and exceptions as the page has them."""
    lines = [
        "| tests of | version | tests | pass | of public parts | pass |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for suite in suites.values():
        passing = suite.public - len(suite.exceptions)
        counts = (suite.total, suite.passing, suite.public, passing)
        shown = " | ".join(map(str, counts))
        lines.append(f"| `{suite.module}` | {suite.version} | {shown} |")
    lines += ["", "| of | tests | why they do not pass |", "| --- | ---: | --- |"]
    for suite in suites.values():
        for why, count in Counter(suite.exceptions.values()).items():
            lines.append(f"| {suite.name} | {count} | {why} |")
    return "\n".join(lines) + "\n"
