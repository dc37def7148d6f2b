"""Whether an alignment proves that a history goes on a conversation.

What proves it is what no other history of the person has: replies that were served
here. A short one ("OK.") proves nothing by itself.
"""

from collections.abc import Sequence
from typing import NamedTuple

from .alignment import Alignment, Pair
from .history import Message
from .known import Kept

# A served reply of this size proves it alone, in bytes of UTF-8.
LONG = 200
# The same where everything else is alike.
MIDDLE = 64
# All that is the same together has at least this size.
LEAST = 24
# What is contained in another text has at least this size, or is lines of its own.
LEAST_CONTAINED = 12
# So many messages of the client's own may begin a compacted history, besides as many
# as are known of it.
MOST_LEADING = 2


class Evidence(NamedTuple):
    """What an alignment has for it and against it."""

    # Served replies, and all messages that are the same or contained, with their sizes:
    # each digest once.
    replies: dict[bytes, int]
    known: dict[bytes, int]
    # Messages with other words, or that are not in the conversation, among known ones.
    strange: int
    leading: int
    # The last pair is a served reply.
    ends_in_reply: bool
    # Messages that only begin or end like those that are there.
    alike: int = 0
    # All before a last reply is the same, and that one is lines of what is there.
    is_wrapped_only: bool = False

    @property
    def size(self) -> int:
        return sum(self.known.values())

    @property
    def is_alike_throughout(self) -> bool:
        return self.strange == 0 and self.ends_in_reply

    def is_proof(self) -> bool:
        if not self.replies or self.leading > MOST_LEADING + len(self.known):
            return False
        return self.has_anchors() or self.has_run() or self.is_wrapped_only

    def has_anchors(self) -> bool:
        """Served replies that stand in order, whatever stands between them."""
        if max(self.replies.values()) >= LONG:
            return self.strange <= len(self.known)
        is_mostly_known = 2 * self.strange < len(self.known)
        return len(self.replies) > 1 and self.size >= LEAST and is_mostly_known

    def has_run(self) -> bool:
        """Known messages up to a served reply, with nothing strange among them."""
        if not self.is_alike_throughout:
            return False
        if len(self.known) < 2:
            return self.size >= MIDDLE and not self.leading
        return self.size >= LEAST

    def is_enough_for_client(self) -> bool:
        """The client's own id says which conversation it is: a reply has to agree."""
        if not self.replies or not self.is_alike_throughout:
            return False
        is_short = len(self.known) < 2 and self.size < LEAST
        return not (is_short and self.leading)


def weigh_alignment(
    alignment: Alignment,
    messages: Sequence[Message],
    kept: Sequence[Kept],
    *,
    is_exact_before: bool,
) -> Evidence:
    """`is_exact_before`: all that comes before the last pair is known by its chain."""
    known: dict[bytes, int] = {}
    replies: dict[bytes, int] = {}
    for pair in alignment.pairs:
        if size := _size_of(pair, kept):
            digest = kept[pair.place].digest
            known[digest] = size
            if kept[pair.place].is_served:
                replies[digest] = size
    last = alignment.pairs[-1]
    strange = len(alignment.inserted) + count_dropped(alignment.pairs, kept)
    strange += sum(pair.is_replaced for pair in alignment.pairs)
    wrapped = last.likeness is not None and last.likeness.is_at_line
    return Evidence(
        replies,
        known,
        strange,
        alignment.leading,
        ends_in_reply=kept[last.place].is_served,
        alike=sum(is_alike_only(pair) for pair in alignment.pairs),
        is_wrapped_only=wrapped and is_exact_before and not strange,
    )


def is_alike_only(pair: Pair) -> bool:
    return pair.likeness is not None and not pair.likeness.is_contained


def count_dropped(pairs: Sequence[Pair], kept: Sequence[Kept]) -> int:
    """Messages that the client has taken out between others, but for its own: it puts
    one of those beside a message, and takes it out again."""
    paired = {pair.place for pair in pairs}
    between = range(pairs[0].place, pairs[-1].place)
    dropped = [kept[place] for place in between if place not in paired]
    served = sum(each.is_served for each in dropped)
    return served + max(0, len(dropped) - served - len(pairs))


def _size_of(pair: Pair, kept: Sequence[Kept]) -> int:
    """What a pair counts for, in bytes; only alike is nothing."""
    if pair.is_same:
        return max(1, kept[pair.place].size)
    like = pair.likeness
    if like is None or not like.is_contained:
        return 0
    return like.size if like.is_at_line or like.size >= LEAST_CONTAINED else 0
