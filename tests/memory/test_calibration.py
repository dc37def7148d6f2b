"""The token estimate of a conversation follows what the provider reports."""

import random

import pytest

from memory import calibration, context, transcript
from memory.models import Conversation

from .scenes import add_turns

pytestmark = pytest.mark.django_db


def learn(conversation, sizes, report):
    """Requests of these plain sizes, reported as the server counts them."""
    for size in sizes:
        seen = round(conversation.token_overhead + conversation.token_ratio * size)
        for name, value in calibration.follow_report(
            conversation, seen, report(size)
        ).items():
            setattr(conversation, name, value)
    conversation.save()
    return conversation


GROWING = range(60, 4000, 180)


def test_a_constant_is_no_factor(alice):
    learned = learn(
        transcript.create_conversation(alice), range(40, 160, 20), lambda n: n + 300
    )
    assert learned.token_ratio == pytest.approx(1, abs=0.05)
    assert learned.token_overhead == pytest.approx(300, abs=30)


def test_a_factor_is_no_constant(alice):
    learned = learn(
        transcript.create_conversation(alice), GROWING, lambda n: round(1.6 * n)
    )
    assert learned.token_ratio == pytest.approx(1.6, abs=0.15)
    assert learned.token_overhead < 200


@pytest.mark.parametrize("constant", [0, 300, 8000])
@pytest.mark.parametrize("factor", [0.8, 1, 1.5, 2.5])
def test_constant_and_factor_are_both_found(alice, constant, factor):
    source = random.Random(5)
    sizes = [source.randrange(500, 5000) for _ in range(60)]
    learned = learn(
        transcript.create_conversation(alice),
        sizes,
        lambda n: round(constant + factor * n),
    )
    for size in (1000, 3000, 9000):
        estimate = learned.token_overhead + learned.token_ratio * size
        assert estimate == pytest.approx(constant + factor * size, rel=0.15)


def test_counts_without_cached_tokens_do_not_lower_the_factor(alice):
    conversation = transcript.create_conversation(alice)
    learn(conversation, [200], lambda n: n)
    learned = learn(conversation, GROWING, lambda n: min(n, 180))
    assert learned.token_ratio > 0.95


def test_the_estimate_of_a_request_has_the_constant_once(alice):
    conversation = transcript.create_conversation(alice)
    add_turns(conversation, 3)
    plain = context.build_request_context(conversation).tokens
    Conversation.objects.update(token_overhead=300)
    conversation.refresh_from_db()
    assert context.build_request_context(conversation).tokens == plain + 300
    # A guess leaves at least half of the room.
    assert context.estimate_overhead(conversation, 400) == 200
