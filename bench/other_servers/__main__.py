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
from . import gateway, llama_server
from .visit import Outcome

HERE = Path(__file__).parent
HEAD = """\
| server | version | turns done | calls done | searches that found | summaries | audit |
| --- | --- | --- | --- | ---: | ---: | --- |"""
# The name of a server, what came of the conversation through it, and why that is less
# than everything.
Row = tuple[str, Outcome, str]


def main() -> None:
    parser = argparse.ArgumentParser("python -m bench.other_servers")
    parser.add_argument("server", choices=RUNS)
    name = parser.parse_args().server
    python = environments.make(ROOT / f".venv-{name}", HERE / f"{name}.txt")
    print(f"{datetime.date.today():%d %B %Y}")
    print(HEAD)
    faults = []
    for label, outcome, why in RUNS[name](python):
        cells = [label, VERSIONS[name], *outcome.cells]
        print(f"| {' | '.join(cells)} |", flush=True)
        if why:
            print(f"    {label}: {why}", file=sys.stderr)
        faults += [f"{label}: {fault}" for fault in outcome.faults]
    sys.exit("\n".join(faults) or 0)


def run_litellm(python: Path) -> Iterator[Row]:
    yield "LiteLLM's proxy", gateway.run(python), ""


def run_llamacpp(python: Path) -> Iterator[Row]:
    for template, outcome in llama_server.run(python):
        yield f"llama.cpp, {template.label}", outcome, template.why


RUNS: dict[str, Callable[[Path], Iterator[Row]]] = {
    "litellm": run_litellm,
    "llamacpp": run_llamacpp,
}


def read_pin(name: str, package: str) -> str:
    """The version of a package in an environment's requirements."""
    pins = (HERE / f"{name}.txt").read_text()
    return re.findall(rf"(?m)^{re.escape(package)}==(\S+)$", pins)[0]


VERSIONS = {
    "litellm": read_pin("litellm", "litellm[proxy]"),
    # Of the package that has its source.
    "llamacpp": f"{llama_server.PACKAGE} {llama_server.VERSION}",
}


if __name__ == "__main__":
    main()
