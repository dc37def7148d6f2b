"""The points where branches part, as pure functions."""

from chatsite.features.tree.forks import (
    Fork,
    Node,
    find_forks,
    find_needless,
    find_owner,
    find_parent,
    list_depths,
)

# 1 is the first; 2 and 3 say its #5 in another way, 4 its #3; 5 parts from 2 at #7.
NODES = {
    row.pk: row
    for row in (Node(1), Node(2, 1, 5), Node(3, 1, 5), Node(4, 1, 3), Node(5, 2, 7))
}


def test_a_branch_parts_from_the_one_that_said_the_message():
    assert find_parent(NODES, 1, 9) == 1
    assert find_parent(NODES, 5, 9) == 5
    # Its own first message said again: beside it, not below.
    assert find_parent(NODES, 5, 7) == 2
    assert find_parent(NODES, 5, 6) == 2
    assert find_parent(NODES, 5, 5) == 1
    assert find_parent(NODES, 5, 1) == 1


def test_a_message_belongs_to_the_branch_that_said_it():
    assert [find_owner(NODES, 5, seq) for seq in (8, 7, 6, 5, 4)] == [5, 5, 2, 2, 1]


def test_each_branch_shows_its_own_forks():
    beside = (1, 2, 3)
    first = {3: Fork((1, 4), 0), 5: Fork(beside, 0)}
    assert find_forks(NODES, 1) == first
    assert find_forks(NODES, 3) == {3: Fork((1, 4), 0), 5: Fork(beside, 2)}
    assert find_forks(NODES, 5) == {
        3: Fork((1, 4), 0),
        5: Fork(beside, 1),
        7: Fork((2, 5), 1),
    }
    # What comes after its own beginning is no fork of this one.
    assert find_forks(NODES, 4) == {3: Fork((1, 4), 1)}


def test_the_tree_is_listed_from_its_beginning():
    depths = [(1, 0), (4, 1), (2, 1), (5, 2), (3, 1)]
    assert list_depths(NODES.values()) == depths


def test_branches_with_existing_descendants_are_needed():
    nodes = [*NODES.values()]
    assert find_needless(nodes, [5]) == {3, 4}
    assert find_needless(nodes, [1]) == {2, 3, 4, 5}
    assert find_needless(nodes, []) == {1, 2, 3, 4, 5}


def test_two_thousand_branches_take_no_time():
    """The branches are a chain, the deepest tree that they can be."""
    nodes = {n: Node(n, n - 1 or None, n) for n in range(1, 2001)}
    assert list_depths(nodes.values())[-1] == (2000, 1999)
    assert len(find_forks(nodes, 2000)) == 1999
    assert find_needless([*nodes.values()], [2000]) == set()
