"""The page of tests/faults names the tests of every fault, and only those."""

import re

from .servers import ROOT

PAGE = (ROOT / "tests" / "faults" / "README.md").read_text()


def test_every_test_of_a_fault_is_in_the_table():
    written = {path.stem for path in (ROOT / "tests" / "faults").glob("test_*.py")}
    named = set(re.findall(r"`(test_\w+)`", PAGE))
    assert named == written


def test_every_fault_was_measured():
    table = PAGE.partition("| fault |")[2].partition("\n## ")[0].splitlines()[2:]
    rows = [line.strip("| ").split(" | ") for line in table if line]
    assert len(rows) > 15
    assert all(len(row) == 3 and re.search(r"\d", row[2]) for row in rows)
