"""The evidence that a history continues a conversation.

Served replies prove it, as no other history of the user has them. A short reply ("OK.")
proves nothing by itself, nor do tool calls and their results: two agents may begin with
equal ones.
"""

from collections.abc import Callable, Sequence, Set
from typing import NamedTuple

from .alignment import Alignment, Pair
from .canonical import encode_text
from .history import Message
from .known import PathMessage

# Sizes are in bytes of UTF-8. A served reply of this size is proof by itself.
LONG = 200
# Likewise, if all other messages match.
MIDDLE = 64
# Minimum total size of all equal messages.
LEAST = 24
# Minimum size of a text inside another one, unless it is on lines of its own.
LEAST_CONTAINED = 12
# Own messages with which a client may begin a compacted history, besides as many as
# are known.
MOST_LEADING = 2
# In bytes: "Understood.", or that earlier messages were left out.
MOST_ACKNOWLEDGED = 400


class Evidence(NamedTuple):
    """The evidence of an alignment, for and against a conversation."""

    # Served replies, and all messages that are equal or contained, with their sizes:
    # each digest once.
    replies: dict[bytes, int]
    known: dict[bytes, int]
    # Messages that are reworded, missing or added among the known ones.
    strange: int
    leading: int
    # The last pair is a served reply.
    ends_in_reply: bool
    # Messages that only begin or end like the stored ones.
    alike: int = 0
    # The last reply is whole lines of the stored one, and all before it is equal.
    is_wrapped_only: bool = False
    # Index of the last pair that only this conversation has, calls aside; -1 if none.
    last_own: int = 0
    # Strange messages that are reworded questions; known messages, except replies,
    # whose texts differ.
    reworded: int = 0
    wrapped: frozenset[bytes] = frozenset()

    @property
    def size(self) -> int:
        return sum(self.known.values())

    @property
    def is_same_but_asked(self) -> bool:
        """All messages are there, and only questions are reworded."""
        is_same = self.strange == self.reworded and self.ends_in_reply
        return is_same and bool(self.replies)

    @property
    def speaking(self) -> Set[bytes]:
        """The known messages without the changed ones, and all known replies."""
        return self.known.keys() - self.wrapped

    def is_proof(self) -> bool:
        if self.last_own < 0 or not self.replies:
            return False
        if self.leading > MOST_LEADING + len(self.known):
            return False
        return self.has_anchors() or self.has_run() or self.is_wrapped_only

    def has_anchors(self) -> bool:
        """Return whether served replies in order are proof, with others in between."""
        if max(self.replies.values()) >= LONG:
            return self.strange <= len(self.known)
        is_mostly_known = 2 * self.strange < len(self.known)
        return len(self.replies) > 1 and self.size >= LEAST and is_mostly_known

    def has_run(self) -> bool:
        """Return whether unbroken known messages up to a served reply are proof."""
        if self.strange or not self.ends_in_reply:
            return False
        if len(self.known) < 2:
            return self.size >= MIDDLE and not self.leading
        return self.size >= LEAST

    def is_enough_for_client(self) -> bool:
        """Return whether this is enough if the client's id names the conversation."""
        if not self.is_same_but_asked:
            return False
        is_short = len(self.known) < 2 and self.size < LEAST
        return not (is_short and self.leading)


def weigh_alignment(
    alignment: Alignment,
    messages: Sequence[Message],
    kept: Sequence[PathMessage],
    *,
    is_exact_before: bool,
    is_rare: Callable[[bytes], bool],
) -> Evidence:
    """Return the evidence of an alignment.

    `is_exact_before` says that the chain proves all messages before the last pair.
    `is_rare` returns whether only one family of conversations has a message.
    """
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
    is_wrapped_only = is_at_line and is_exact_before and not strange
    return Evidence(
        replies,
        known,
        strange,
        alignment.leading,
        ends_in_reply=kept[last.place].is_served,
        alike=sum(bool(p.likeness) and not p.is_contained for p in alignment.pairs),
        is_wrapped_only=is_wrapped_only,
        last_own=len(alignment.pairs) - 1 if is_wrapped_only else last_own,
        reworded=sum(is_question(messages[at]) for at in replaced),
        wrapped=frozenset(wrapped),
    )


def _is_acknowledged(
    alignment: Alignment, messages: Sequence[Message], kept: Sequence[PathMessage]
) -> bool:
    """Return whether the client acknowledges its own summary, before any known reply.

    A short reply after a message of the user counts as that.
    """
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
    """Return whether a user wrote the message.

    In some APIs, tool results have the role of the user, too.
    """
    return message.role == "user" and not is_result(message)


def is_result(message: Message) -> bool:
    return any("result" in part for part in message.parts)


def is_call(message: Message) -> bool:
    return any("call" in part for part in message.parts)


def _is_own(
    pair: Pair,
    messages: Sequence[Message],
    kept: Sequence[PathMessage],
    is_rare: Callable[[bytes], bool],
) -> bool:
    """Return whether this pair is proof of the conversation.

    A call has to be long and rare; another equal message, such as a tool result, rare
    or a served reply of at least MIDDLE bytes.
    """
    message, (digest, _, size, is_served) = messages[pair.at], kept[pair.place]
    if is_call(message):
        return is_served and size >= LONG and is_rare(digest)
    if not pair.is_same:
        # A short reply inside a longer message may be any conversation's.
        return _size_of(pair, kept) >= MIDDLE if is_served else is_question(message)
    return (is_served and size >= MIDDLE) or is_rare(digest)


def count_dropped(pairs: Sequence[Pair], kept: Sequence[PathMessage]) -> int:
    """Return how many messages the client has dropped between others.

    One message that was not served is free per pair: clients add messages of their own
    beside others, and drop them again.
    """
    paired = {pair.place for pair in pairs}
    between = range(pairs[0].place, pairs[-1].place)
    dropped = [kept[place] for place in between if place not in paired]
    served = sum(each.is_served for each in dropped)
    return served + max(0, len(dropped) - served - len(pairs))


def _size_of(pair: Pair, kept: Sequence[PathMessage]) -> int:
    """Return the weight of a pair in bytes; 0 if its texts are only similar."""
    if pair.is_same:
        return max(1, kept[pair.place].size)
    like = pair.likeness
    if not pair.is_contained:
        return 0
    return like.size if like.is_at_line or like.size >= LEAST_CONTAINED else 0
