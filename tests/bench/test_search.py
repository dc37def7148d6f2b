"""The made-up sets of the search, and what is found of them."""

from statistics import fmean

import pytest

from bench.memory.days import make_days
from bench.memory.facts import make_facts
from bench.memory.search import score


@pytest.mark.parametrize("half", ["seen", "unseen"])
@pytest.mark.parametrize("make", [make_days, make_facts])
def test_generated_facts_can_be_found(make, half):
    for recording in make(half):
        ids = {message.id for message in recording.messages}
        assert len(recording.qa) >= 50
        assert all(ids.issuperset(asked.evidence_ids) for asked in recording.qa)
        assert make(half)[0] == make(half)[0]


def test_named_days_are_found_in_both_languages():
    for recording in make_days("seen"):
        ours, plain = map(fmean, zip(*score(recording), strict=True))
        assert ours >= 0.9 > plain
