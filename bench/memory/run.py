"""Runs all contestants on all conversations, several at once, and gathers figures."""

import logging
import os
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version

from memory.evaluation.metrics import Tally

from .contestants import CONTESTANTS
from .conversations import load
from .figures import Figures, Results
from .meter import Meter
from .rules import keep_rules
from .stress import survive
from .writers import write_extract

PEERS = ("langchain", "langgraph", "langmem", "deepagents")


def run(beginning: str = "") -> Results:
    """Run the contestants whose names begin so."""
    names = [name for name in CONTESTANTS if name.startswith(beginning)]
    with ProcessPoolExecutor(initializer=keep_quiet) as pool:
        figures = []
        for each in pool.map(measure, names):
            print(f"measured: {each.name}", file=sys.stderr)
            figures.append(each)
    sets = {name: len(recordings) for name, recordings in load().items()}
    return Results(figures, sets, {peer: version(peer) for peer in PEERS})


def measure(name: str) -> Figures:
    make = CONTESTANTS[name]
    figures = Figures(name, {}, {}, survive(make), keep_rules(make))
    for set_name, recordings in load().items():
        total = Tally()
        lost = 0
        hashes = figures.hashes[set_name] = {}
        for recording in recordings:
            meter = Meter(make(write_extract), recording)
            total += meter.play()
            lost += meter.lost
            hashes[recording.id] = meter.hashes
        figures.reports[set_name] = total.make_report() | {"lost": lost}
    return figures


def keep_quiet() -> None:
    """Silence warnings of LangMem and the checkpointer that are counted, or do not
    matter here.
    """
    os.environ["LANGSMITH_TRACING"] = "false"
    warnings.simplefilter("ignore")
    logging.disable(logging.ERROR)
