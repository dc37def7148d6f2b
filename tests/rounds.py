"""Rounds of random tests: a part in each run, all of them in `make test-weekly`."""

import os

from . import plugin

# Set by scripts/test.sh for the weekly tests.
ARE_ALL = os.environ.get("TEST_ROUNDS") == "all"


def choose(usual: int, every: int) -> int:
    """Return how many rounds this run takes."""
    return every if ARE_ALL else usual


def choose_for_database(usual: dict[str, int], every: dict[str, int]) -> int:
    """Return how many rounds this run takes on its database."""
    return choose(usual[plugin.database], every[plugin.database])
