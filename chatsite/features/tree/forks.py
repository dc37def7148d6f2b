"""Where branches part, as pure functions: knows no database.

A branch has what its parent has before a number, and says the message of that number in
another way. It parts from its parent later than the parent does from its own: so no two
branches are the same as far as a number that either of them parted at.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Node:
    """A branch, with the number of the message at which it parts from its parent; the
    first one has neither."""

    pk: int
    parent: int | None = None
    seq: int = 0


@dataclass(frozen=True, slots=True)
class Fork:
    """Branches that say a message in different ways, in their order, and the place of
    the one that is shown."""

    branches: tuple[int, ...]
    place: int


def find_parent(nodes: Mapping[int, Node], start: int, seq: int) -> int:
    """The branch that one has to part from which says message `seq` of branch `start`
    in another way."""
    node = nodes[start]
    while node.parent is not None and seq <= node.seq:
        node = nodes[node.parent]
    return node.pk


def find_owner(nodes: Mapping[int, Node], start: int, seq: int) -> int:
    """The branch of which message `seq` of branch `start` is a copy, or itself."""
    node = nodes[start]
    while node.parent is not None and seq < node.seq:
        node = nodes[node.parent]
    return node.pk


def find_forks(nodes: Mapping[int, Node], shown: int) -> dict[int, Fork]:
    """What a branch says that others say in another way, by the message's number."""
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
    """All branches as a tree: each with how deep it is, the parents before what parts
    from them, by number."""
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
    """Of branches that are gone, those that nothing parts from which is still there."""
    parents = {node.pk: node.parent for node in nodes}
    needed: set[int] = set()
    for pk in there:
        above: int | None = pk
        while above is not None and above not in needed:
            needed.add(above)
            above = parents[above]
    return parents.keys() - needed
