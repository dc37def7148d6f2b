"""References to consecutive messages: [[first, last], ...], both ends included."""

from collections.abc import Iterable, Sequence
from math import ceil

from django.db.models import Q

Ranges = list[list[int]]
BRANCHES = 16


def to_ranges(seqs: Iterable[int]) -> Ranges:
    ranges: Ranges = []
    for seq in sorted(seqs):
        if ranges and ranges[-1][1] == seq - 1:
            ranges[-1][1] = seq
        else:
            ranges.append([seq, seq])
    return ranges


def within(ranges: Iterable[Sequence[int]]) -> Q:
    """The rows whose number is in one of the ranges; without a range no row.

    As a tree: SQLite takes no chain of 1,000 conditions, and a row outside of a branch
    is compared with none of its ranges.
    """
    spans = sorted((first, last) for first, last in ranges)
    if len(spans) <= BRANCHES:
        parts = [Q(seq__range=span) for span in spans]
    else:
        size = ceil(len(spans) / BRANCHES)
        groups = [spans[at : at + size] for at in range(0, len(spans), size)]
        parts = [
            Q(seq__range=(group[0][0], max(last for _, last in group))) & within(group)
            for group in groups
        ]
    return Q(*parts, _connector=Q.OR) if parts else Q(pk__in=[])
