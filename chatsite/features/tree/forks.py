"""The forks of branches, as pure functions without a database.

A branch has the messages of its parent before a number, and another version of the
message of that number. It forks from its parent later than the parent does from its
own: so no two branches are the same up to a number at which either of them forked.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Node:
    """A branch, with its parent and the number of the message at which it forks.

    The first branch has neither.
    """

    pk: int
    parent: int | None = None
    seq: int = 0


@dataclass(frozen=True, slots=True)
class Fork:
    """The branches with different versions of a message, and the shown place."""

    branches: tuple[int, ...]
    place: int


def find_parent(nodes: Mapping[int, Node], start: int, seq: int) -> int:
    """Return the parent of a new branch with another version of message `seq`.

    `start` is the branch in which the message is edited.
    """
    node = nodes[start]
    while node.parent is not None and seq <= node.seq:
        node = nodes[node.parent]
    return node.pk


def find_owner(nodes: Mapping[int, Node], start: int, seq: int) -> int:
    """Return the branch that message `seq` of branch `start` was copied from.

    That is `start` itself if the message is its own.
    """
    node = nodes[start]
    while node.parent is not None and seq < node.seq:
        node = nodes[node.parent]
    return node.pk


def find_forks(nodes: Mapping[int, Node], shown: int) -> dict[int, Fork]:
    """Return the forks of a branch, by the number of the message."""
    beside: dict[int, dict[int, list[int]]] = {}
    for node in sorted(nodes.values(), key=lambda each: each.pk):
        if node.parent is not None:
            at = beside.setdefault(node.parent, {})
            at.setdefault(node.seq, []).append(node.pk)
    forks, below, node = {}, None, nodes[shown]
    while True:
        for seq, children in beside.get(node.pk, {}).items():
            if below is None or seq <= below.seq:
                is_below = below is not None and seq == below.seq
                branches = (node.pk, *children)
                here = below.pk if is_below else node.pk
                forks[seq] = Fork(branches, branches.index(here))
        if node.parent is None:
            return forks
        below, node = node, nodes[node.parent]


def list_depths(nodes: Iterable[Node]) -> list[tuple[int, int]]:
    """Return all branches as a tree, each with its depth.

    Parents come before their children, which are ordered by number.
    """
    children: dict[int | None, list[Node]] = {}
    for node in sorted(nodes, key=lambda each: (each.seq, each.pk)):
        children.setdefault(node.parent, []).append(node)
    found, waiting = [], [(node, 0) for node in reversed(children.get(None, ()))]
    while waiting:
        node, depth = waiting.pop()
        found.append((node.pk, depth))
        waiting += [(each, depth + 1) for each in reversed(children.get(node.pk, ()))]
    return found


def find_needless(nodes: Sequence[Node], there: Iterable[int]) -> set[int]:
    """Return the deleted branches that have no existing descendants."""
    parents = {node.pk: node.parent for node in nodes}
    needed: set[int] = set()
    for pk in there:
        above: int | None = pk
        while above is not None and above not in needed:
            needed.add(above)
            above = parents[above]
    return parents.keys() - needed
