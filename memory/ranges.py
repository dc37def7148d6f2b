"""References to consecutive messages: [[first, last], ...], both ends included.

The cost of working with them depends on the number of messages, not on their numbers,
which have gaps.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from math import ceil
from typing import Any

from django.db.models import Q

Ranges = list[list[int]]
BRANCHES = 16


def to_ranges(seqs: Iterable[int]) -> Ranges:
    return pack_numbers(sorted(seqs))


def pack_numbers(numbers: Iterable[int]) -> Ranges:
    """Return the numbers in their order, as ranges of consecutive ones."""
    ranges: Ranges = []
    for number in numbers:
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ranges


def range_without(first: int, last: int, seqs: Iterable[int]) -> Ranges:
    """Return the numbers from `first` to `last` that are not among `seqs`."""
    ranges: Ranges = []
    for seq in sorted(seqs):
        if first <= seq <= last:
            if first < seq:
                ranges.append([first, seq - 1])
            first = seq + 1
    return [*ranges, [first, last]] if first <= last else ranges


def merge_ranges(ranges: Iterable[Sequence[int]]) -> Ranges:
    """Return the ranges in order, without those that overlap or touch."""
    merged: Ranges = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1][1] = max(last, merged[-1][1])
        else:
            merged.append([first, last])
    return merged


def in_ranges(ranges: Iterable[Sequence[int]]) -> Q:
    """Match the rows whose number is in one of the ranges; without a range none.

    The condition is a tree: SQLite accepts no chain of 1,000 conditions, and a row
    outside of a branch is compared with none of its ranges.
    """
    spans = sorted((first, last) for first, last in ranges)
    if len(spans) <= BRANCHES:
        parts = [Q(seq__range=span) for span in spans]
    else:
        size = ceil(len(spans) / BRANCHES)
        groups = [spans[at : at + size] for at in range(0, len(spans), size)]
        parts = [
            Q(seq__range=(group[0][0], max(last for _, last in group)))
            & in_ranges(group)
            for group in groups
        ]
    return Q(*parts, _connector=Q.OR) if parts else Q(pk__in=[])


def list_noted(refs: Mapping[str, Any]) -> set[int]:
    """Return the messages that a request's notes are from, with those of long files."""
    return {*refs.get("recalled", ()), *(seq for seq, *_ in refs.get("files", ()))}


def is_within(seq: int, ranges: Iterable[Sequence[int]]) -> bool:
    return any(first <= seq <= last for first, last in ranges)


class Totals:
    """Values of messages by number, summed up."""

    def __init__(self, values: Mapping[int, int]) -> None:
        self._seqs = sorted(values)
        self._sums = list(accumulate((values[seq] for seq in self._seqs), initial=0))

    def up_to(self, seq: int) -> int:
        """Return the sum up to this number."""
        return self._sums[bisect_right(self._seqs, seq)]

    def sum_within(self, ranges: Iterable[Sequence[int]]) -> int:
        return sum(self.up_to(last) - self.up_to(first - 1) for first, last in ranges)
