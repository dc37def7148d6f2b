"""Whether an alignment proves that a history goes on a conversation.

What proves it is what no other history of the person has: replies that were served
here. A short one ("OK.") proves nothing by itself, nor do calls of tools and what these
find: two agents begin with the same ones.
"""

from collections.abc import Callable, Sequence, Set
from typing import NamedTuple

from .alignment import Alignment, Pair
from .canonical import encode_text
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
# In bytes: "Understood.", or that earlier messages were left out.
MOST_ACKNOWLEDGED = 400


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
    # The last pair that is of this conversation alone, and not only a call; -1: none.
    last_own: int = 0
    # Of the strange messages, questions that stand at their place in other words; of
    # the known ones, those of persons that are in other words.
    reworded: int = 0
    wrapped: frozenset[bytes] = frozenset()

    @property
    def size(self) -> int:
        return sum(self.known.values())

    @property
    def is_alike_throughout(self) -> bool:
        return self.strange == 0 and self.ends_in_reply

    @property
    def is_same_but_asked(self) -> bool:
        """All is there, only that questions are in other words."""
        is_same = self.strange == self.reworded and self.ends_in_reply
        return is_same and bool(self.replies)

    @property
    def speaking(self) -> Set[bytes]:
        """The messages that are known as they are, and replies."""
        return self.known.keys() - self.wrapped

    def is_proof(self) -> bool:
        if self.last_own < 0 or not self.replies:
            return False
        if self.leading > MOST_LEADING + len(self.known):
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
        if not self.is_same_but_asked:
            return False
        is_short = len(self.known) < 2 and self.size < LEAST
        return not (is_short and self.leading)


def weigh_alignment(
    alignment: Alignment,
    messages: Sequence[Message],
    kept: Sequence[Kept],
    *,
    is_exact_before: bool,
    is_rare: Callable[[bytes], bool],
) -> Evidence:
    """`is_exact_before`: all that comes before the last pair is known by its chain.
    `is_rare`: whether a message is known in one conversation only."""
    known: dict[bytes, int] = {}
    replies: dict[bytes, int] = {}
    wrapped, last_own = set(), -1
    for place, pair in enumerate(alignment.pairs):
        if size := _size_of(pair, kept):
            digest = kept[pair.place].digest
            known[digest] = size
            if kept[pair.place].is_served:
                replies[digest] = size
            elif not pair.is_same:
                wrapped.add(digest)
            if _is_own(pair, messages, kept, is_rare):
                last_own = place
    last = alignment.pairs[-1]
    strange = len(alignment.inserted) + count_dropped(alignment.pairs, kept)
    replaced = [pair.at for pair in alignment.pairs if pair.is_replaced]
    is_at_line = last.likeness is not None and last.likeness.is_at_line
    strange += len(replaced) - _is_acknowledged(alignment, messages, kept)
    return Evidence(
        replies,
        known,
        strange,
        alignment.leading,
        ends_in_reply=kept[last.place].is_served,
        alike=sum(is_alike_only(pair) for pair in alignment.pairs),
        is_wrapped_only=is_at_line and is_exact_before and not strange,
        last_own=last_own,
        reworded=sum(is_question(messages[at]) for at in replaced),
        wrapped=frozenset(wrapped),
    )


def _is_acknowledged(
    alignment: Alignment, messages: Sequence[Message], kept: Sequence[Kept]
) -> bool:
    """Return whether a short reply of the client's own answers its summary, before all
    replies that are known."""
    pairs = alignment.pairs
    known = (p.at for p in pairs if kept[p.place].is_served and not p.is_replaced)
    own = {*alignment.inserted, *(pair.at for pair in pairs if pair.is_replaced)}
    return any(
        messages[at].role == "assistant"
        and messages[at - 1].role == "user"
        and len(encode_text(messages[at].text)) <= MOST_ACKNOWLEDGED
        for at in own & {*range(1, next(known, 0))}
    )


def is_question(message: Message) -> bool:
    """Return whether a person says it: on some wires results of tools have their
    role."""
    return message.role == "user" and not is_result(message)


def is_result(message: Message) -> bool:
    return any("result" in part for part in message.parts)


def is_call(message: Message) -> bool:
    return any("call" in part for part in message.parts)


def _is_own(
    pair: Pair,
    messages: Sequence[Message],
    kept: Sequence[Kept],
    is_rare: Callable[[bytes], bool],
) -> bool:
    """Return whether this pair proves something: of calls only a long and rare one, of
    results one that no other agent has."""
    message, (digest, _, size, is_served) = messages[pair.at], kept[pair.place]
    if is_call(message):
        return is_served and size >= LONG and is_rare(digest)
    if not pair.is_same:
        return is_served or is_question(message)
    return (is_served and size >= MIDDLE) or is_rare(digest)


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
