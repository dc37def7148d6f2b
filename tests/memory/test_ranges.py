"""Conditions made of many ranges, as a long conversation with gaps has them."""

import sqlite3

import psycopg
import pytest
from django.db import OperationalError, connection
from django.db.models import Count, Q

from memory import transcript
from memory.database import is_away
from memory.ranges import in_ranges, range_without, to_ranges

from .scenes import say

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("gone", [(), (1,), (9,), (4, 5), (0, 3, 10), range(1, 10)])
def test_a_range_without_some_numbers_has_the_others(gone):
    assert range_without(1, 9, gone) == to_ranges({*range(1, 10)} - {*gone})


@pytest.mark.parametrize("count", [0, 1, 16, 17, 300, 1000])
def test_many_ranges_find_their_rows(alice, count):
    conversation = transcript.create_conversation(alice)
    for text in "abcdefgh":
        say(conversation, text)
    seqs = sorted(conversation.messages.values_list("seq", flat=True))
    # Every other number, the last ones among them.
    wanted = range(max(seqs) - 2 * count, max(seqs) + 1, 2) if count else []
    ranges = to_ranges(wanted)
    found = conversation.messages.filter(in_ranges(ranges)).values_list(
        "seq", flat=True
    )
    assert sorted(found) == sorted(set(seqs) & set(wanted))
    counts = conversation.messages.aggregate(
        inside=Count("pk", in_ranges(ranges)), outside=Count("pk", ~in_ranges(ranges))
    )
    assert counts == {"inside": len(found), "outside": len(seqs) - len(found)}


def test_ranges_in_any_order_that_overlap_are_found(alice):
    conversation = transcript.create_conversation(alice)
    for text in "abcdefgh":
        say(conversation, text)
    seqs = sorted(conversation.messages.values_list("seq", flat=True))
    ranges = [[n, n + 30] for n in range(1000, 20, -10)] + [[2, 2000]]
    found = conversation.messages.filter(in_ranges(ranges)).values_list(
        "seq", flat=True
    )
    assert sorted(found) == [seq for seq in seqs if seq >= 2]


def test_a_statement_that_is_too_large_is_not_a_database_that_is_away():
    if connection.vendor == "sqlite":
        chain = Q(pk__in=[])
        for number in range(1200):
            chain |= Q(pk=number)
        with pytest.raises(OperationalError) as caught:
            transcript.Conversation.objects.filter(chain).exists()
        error = caught.value
    else:
        error = OperationalError()
        error.__cause__ = psycopg.errors.StatementTooComplex()
    assert not is_away(error)


@pytest.mark.parametrize(
    "cause", [psycopg.errors.AdminShutdown(), sqlite3.OperationalError("locked"), None]
)
def test_temporary_errors_count_as_away(cause):
    error = OperationalError()
    error.__cause__ = cause
    assert is_away(error)
