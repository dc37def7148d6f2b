"""Have conversations with tools through other people's servers:
`python -m bench.other_servers litellm|llamacpp`.

Each is installed in its pinned version into an environment of its own. The run prints
the table of docs/testing.md, and fails where something is not as it should be.
"""

import argparse
import datetime
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.servers import ROOT

from .. import environments
from . import gateway
from .visit import Outcome

HERE = Path(__file__).parent
HEAD = """\
| server | version | turns done | calls done | searches that found | summaries | audit |
| --- | --- | --- | --- | ---: | ---: | --- |"""
# The name of a server, and what came of the conversation through it.
Row = tuple[str, Outcome]


def main() -> None:
    parser = argparse.ArgumentParser("python -m bench.other_servers")
    parser.add_argument("server", choices=RUNS)
    name = parser.parse_args().server
    python = environments.make(ROOT / f".venv-{name}", HERE / f"{name}.txt")
    rows = list(RUNS[name](python))
    print(f"{datetime.date.today():%d %B %Y}")
    print(HEAD)
    for label, outcome in rows:
        print(f"| {' | '.join([label, read_pin(name), *outcome.cells])} |")
    faults = [f"{label}: {fault}" for label, each in rows for fault in each.faults]
    sys.exit("\n".join(faults))


def run_litellm(python: Path) -> Iterator[Row]:
    yield "LiteLLM's proxy", gateway.run(python)


RUNS: dict[str, Callable[[Path], Iterator[Row]]] = {"litellm": run_litellm}


def read_pin(name: str) -> str:
    """The version in the first line of an environment's requirements."""
    return re.findall(r"^[\w\[\]-]+==(\S+)$", (HERE / f"{name}.txt").read_text(), re.M)[
        0
    ]


if __name__ == "__main__":
    main()
