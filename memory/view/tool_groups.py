"""Groups of messages that belong together: a tool call and its results.

The model sees all of a group or nothing.
"""

from collections.abc import Iterable

from django.db.models import Q

from memory.engine.cut_points import match_results
from memory.models import Conversation, Message, as_langchain

# A call is answered within this many numbers: twice what a turn can take.
REACH = 512
IDS = ("seq", "role", "tool_calls", "tool_call_id", "late_for")


def complete_groups(conversation: Conversation, seqs: Iterable[int]) -> list[int]:
    """Return these numbers and those of the other messages of their groups.

    The numbers rise.
    """
    wanted = set(seqs)
    return sorted(wanted.union(*find_groups(conversation, wanted)))


def find_groups(conversation: Conversation, seqs: Iterable[int]) -> list[set[int]]:
    """Return the groups that have one of these messages, by their numbers.

    A late result belongs to the group of its call, but is no group by itself: in its
    place, the call has an answer. A deleted message names no calls any more; the
    results after it still belong to its group.
    """
    wanted = set(seqs)
    if not wanted:
        return []
    first, last = min(wanted), max(wanted)
    calling = ~Q(tool_calls=[]) | Q(deleted_at__isnull=False)
    calling &= Q(role=Message.Role.ASSISTANT)
    rows = conversation.messages.filter(calling | Q(role=Message.Role.TOOL))
    if not rows.filter(seq__range=(first, last)).exists():
        return []
    near = rows.filter(seq__range=(first - REACH, last + REACH)).order_by("seq")
    found = list(near.values_list(*IDS))
    messages = [
        as_langchain(seq, role, "", None, calls, call_id, late_for=late_for)
        for seq, role, calls, call_id, late_for in found
    ]
    groups = {seq: {seq} for seq, role, *_ in found if role != Message.Role.TOOL}
    callers = match_results(messages)
    deleted: set[int] | None = None
    for index, (seq, role, calls, _, late_for) in enumerate(found):
        if role != Message.Role.TOOL:
            deleted = None if calls else groups[seq]
        elif deleted is not None and late_for is None:
            deleted.add(seq)
        elif index in callers:
            groups[found[callers[index]][0]].add(seq)
    touched = {seq: group for seq, group in groups.items() if group & wanted}
    late = conversation.messages.filter(late_for__in=touched) if touched else []
    for row in late:
        touched[row.late_for].add(row.seq)
    return list(touched.values())
