"""Pairs of requests with planted causes: the first difference is exact, and all of the
causes are named, and no other.
"""

import random

import pytest

from memory import transcript

from .pairs import Talk, compare, find_where_they_differ

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("seed", range(8))
def test_the_planted_causes_are_named_and_no_others(alice, seed):
    conversation = transcript.create_conversation(alice)
    talk = Talk(conversation, random.Random(seed)).begin()
    before = talk.call
    for _ in range(12):
        causes = talk.choose()
        expected = talk.say(causes)
        figures = compare(conversation, talk.call.message.seq)
        found = [cause.code for cause in figures.causes]
        assert set(found) == expected, (causes, figures.causes)
        sent = figures.compared.requests
        assert [each.call.pk for each in sent] == [before.pk, talk.call.pk]
        place = figures.place and (figures.place.message, figures.place.character)
        wires = [each.built.wire for each in sent]
        assert place == find_where_they_differ(*wires), causes
        assert all(each.is_proved for each in sent)
        # What the provider reported, of each.
        costs = figures.costs
        counted = sum(part.tokens for part in costs.parts)
        assert counted + costs.uncounted == costs.total == talk.call.tokens_input
        before = talk.call
