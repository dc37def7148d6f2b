"""References to consecutive messages: [[first, last], ...], both ends included."""

from collections.abc import Iterable, Sequence

from django.db.models import Q

Ranges = list[list[int]]


def to_ranges(seqs: Iterable[int]) -> Ranges:
    ranges: Ranges = []
    for seq in sorted(seqs):
        if ranges and ranges[-1][1] == seq - 1:
            ranges[-1][1] = seq
        else:
            ranges.append([seq, seq])
    return ranges


def within(ranges: Iterable[Sequence[int]]) -> Q:
    """The rows whose number is in one of the ranges; without a range no row."""
    wanted = Q(pk__in=[])
    for first, last in ranges:
        wanted |= Q(seq__range=(first, last))
    return wanted
