"""Runs all contestants on all conversations, several at once, and gathers figures."""

import logging
import os
import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from typing import Any

from memory.evaluation.metrics import Tally

from .contestants import CONTESTANTS
from .conversations import load
from .figures import Figures, Results
from .meter import Meter
from .stress import survive
from .writers import write_extract

PEERS = ("langchain", "langgraph", "langmem", "deepagents")


def run() -> Results:
    with ProcessPoolExecutor(initializer=keep_quiet) as pool:
        figures = []
        for each in pool.map(measure, CONTESTANTS):
            print(f"measured: {each.name}", file=sys.stderr)
            figures.append(each)
    sets = {name: len(recordings) for name, recordings in load().items()}
    return Results(figures, sets, {peer: version(peer) for peer in PEERS})


def measure(name: str) -> Figures:
    return Figures(name, dict(_report_all(name)), survive(CONTESTANTS[name]))


def _report_all(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for set_name, recordings in load().items():
        total = Tally()
        lost = 0
        for recording in recordings:
            meter = Meter(CONTESTANTS[name](write_extract), recording)
            total += meter.play()
            lost += meter.lost
        yield set_name, total.report() | {"lost": lost}


def keep_quiet() -> None:
    """What LangMem and the checkpointer warn of is counted, or is no matter here."""
    os.environ["LANGSMITH_TRACING"] = "false"
    warnings.simplefilter("ignore")
    logging.disable(logging.ERROR)
