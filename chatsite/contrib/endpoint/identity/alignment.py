"""A history laid beside a kept conversation: which of its messages are there, in order.

Messages that are the same are matched by digest so that as many served replies as
possible stand in order; what lies between two matches is compared by its text. Replies
count most because no client can have them from elsewhere. What a client repeats with
every request, such as a constant last block, can be matched by chance.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from .history import Message
from .known import Kept
from .similarity import Likeness, compare_texts, find_runs

# Of a message that is there more often, no place is a sign of anything.
MOST_TWINS = 4
# A served reply outweighs all other messages.
SERVED_WEIGHT = 1_000_000
# So many messages a client may take out between two others, such as its own reminders.
MOST_DROPPED = 2
# How far a message is looked for among those between two matches.
MOST_SKIPPED = 4


class Pair(NamedTuple):
    """A message of the history by its index, and what it is in the conversation."""

    at: int
    # In the part of the conversation that was read.
    place: int
    # None: the same.
    likeness: Likeness | None = None
    # Only at the same place in the same role, with other words.
    is_replaced: bool = False

    @property
    def is_same(self) -> bool:
        return self.likeness is None and not self.is_replaced


class Alignment(NamedTuple):
    """Pairs in order; what the history has besides them, and how many messages of the
    conversation come after the last one."""

    pairs: list[Pair]
    inserted: list[int]
    # Messages at the beginning of the history that are not there.
    leading: int
    # Messages of the conversation that were read and come before the first pair.
    missing: int
    left: int


ReadText = Callable[[int], str | None]


def align_history(
    messages: Sequence[Message],
    kept: Sequence[Kept],
    read_text: ReadText,
    *,
    known: tuple[int, int] | None = None,
    by_end: bool = False,
    with_question: bool = False,
) -> Alignment:
    """`read_text` gives the text of a kept message by its place, or None when enough
    were read. `known`: the last pair that the chain proves.
    `by_end`: from the last replies on, by their texts alone.
    `with_question`: what comes before the first match may be it in other words."""
    messages = leave_out_input(messages)
    aligner = Aligner(messages, kept, read_text)
    matches = [] if by_end else match_around(messages, kept, known)
    alignment = aligner.align(matches)
    return aligner.add_question(alignment) if with_question else alignment


def leave_out_input(messages: Sequence[Message]) -> Sequence[Message]:
    """Without what comes after the last reply: it is new, even where a client says the
    same with every request."""
    end = len(messages)
    while end and messages[end - 1].role != "assistant":
        end -= 1
    return messages[:end]


def match_around(
    messages: Sequence[Message], kept: Sequence[Kept], known: tuple[int, int] | None
) -> list[tuple[int, int]]:
    """Match what is before and after the pair that the chain proves, and the messages
    next before it: an agent that does the same once more has all of them twice."""
    if known is None or known[0] >= len(messages):
        return match_digests(messages, kept)
    first, place = index, last = known
    while min(first, place) and messages[first - 1].digest == kept[place - 1].digest:
        first, place = first - 1, place - 1
    later = match_digests(messages[index + 1 :], kept[last + 1 :])
    return [
        *match_digests(messages[:first], kept[:place]),
        *zip(range(first, index + 1), range(place, last + 1), strict=True),
        *((at + index + 1, there + last + 1) for at, there in later),
    ]


def match_digests(
    messages: Sequence[Message], kept: Sequence[Kept]
) -> list[tuple[int, int]]:
    """The heaviest list of equal messages that is in order on both sides."""
    places: dict[bytes, list[int]] = defaultdict(list)
    for place, each in enumerate(kept):
        places[each.digest].append(place)
    tree = HeaviestBefore(len(kept))
    steps: list[tuple[int, int, int]] = []
    for index, message in enumerate(messages):
        found = places.get(message.digest, ())
        if len(found) > MOST_TWINS:
            continue
        # Backwards, so that one message is not matched twice.
        for place in reversed(found):
            weight, before = tree.find(place)
            weight += SERVED_WEIGHT if kept[place].is_served else 1
            tree.add(place, weight, len(steps))
            steps.append((index, place, -before))
    return _follow_back(steps, -tree.find(len(kept))[1])


def _follow_back(steps: list[tuple[int, int, int]], last: int) -> list[tuple[int, int]]:
    matches = []
    while last >= 0:
        index, place, last = steps[last]
        matches.append((index, place))
    return matches[::-1]


NOTHING = (0, 1)


class HeaviestBefore:
    """The heaviest of all added before a place, in logarithmic time (Fenwick). Of
    equal ones it is the first: what comes later may be the same, wrapped."""

    def __init__(self, size: int) -> None:
        self.best = [NOTHING] * (size + 1)

    def find(self, place: int) -> tuple[int, int]:
        """Its weight, and the negative of its step."""
        heaviest = NOTHING
        while place > 0:
            heaviest = max(heaviest, self.best[place])
            place -= place & -place
        return heaviest

    def add(self, place: int, weight: int, step: int) -> None:
        place += 1
        while place < len(self.best):
            self.best[place] = max(self.best[place], (weight, -step))
            place += place & -place


class Aligner:
    """The messages between matches, compared by their texts."""

    def __init__(
        self, messages: Sequence[Message], kept: Sequence[Kept], read_text: ReadText
    ) -> None:
        self.messages = messages
        self.kept = kept
        self.read_text = read_text

    def align(self, matches: list[tuple[int, int]]) -> Alignment:
        if not matches:
            return self.sum_up(self.pair_ends())
        pairs: list[Pair] = []
        index = place = 0
        for next_index, next_place in matches:
            gap = range(index, next_index), range(place, next_place)
            pairs += self.pair_between(*gap) if pairs else self.pair_begin(*gap)
            pairs.append(Pair(next_index, next_place))
            index, place = next_index + 1, next_place + 1
        rest = range(index, len(self.messages)), range(place, len(self.kept))
        return self.sum_up(pairs + self.pair_tail(*rest))

    def add_question(self, alignment: Alignment) -> Alignment:
        if not alignment.pairs or not alignment.leading:
            return alignment
        before = range(alignment.missing)
        if not (pair := self.find_question(alignment.leading - 1, before)):
            return alignment
        pairs = [pair, *alignment.pairs]
        return alignment._replace(pairs=pairs, leading=pair.at, missing=pair.place)

    def leave_out_own(self, pairs: list[Pair]) -> list[Pair]:
        """Leave out a client's own reply to a summary ("Understood.") that it gave to
        an earlier one, too, and what is before: served replies come between."""
        served = (n for n, pair in enumerate(pairs) if self.kept[pair.place].is_served)
        first = next(served, 0)
        for n in reversed(range(first)):
            is_reply = self.kept[pairs[n].place].role == "assistant"
            between = self.kept[pairs[n].place : pairs[first].place]
            if is_reply and any(each.is_served for each in between):
                return pairs[n + 1 :]
        return pairs

    def sum_up(self, pairs: list[Pair]) -> Alignment:
        pairs = self.leave_out_own(pairs)
        if not pairs:
            return Alignment([], [], len(self.messages), 0, len(self.kept))
        first, last = pairs[0], pairs[-1]
        paired = {pair.at for pair in pairs}
        between = range(first.at, last.at)
        return Alignment(
            pairs,
            [index for index in between if index not in paired],
            leading=first.at,
            missing=first.place,
            left=len(self.kept) - last.place - 1,
        )

    def pair_ends(self) -> list[Pair]:
        """Where no message is the same: the last replies, and what comes before."""
        index, place = len(self.messages) - 1, len(self.kept) - 1
        last = self._find_within(index, place) if min(index, place) >= 0 else None
        if last is None:
            return []
        return [*self.pair_head(range(index), range(place)), last]

    def pair_gap(self, indexes: range, places: range) -> Iterable[Pair]:
        """Between two matches."""
        if len(indexes) == len(places) and self._have_equal_roles(indexes, places):
            return [self._compare(*each) for each in zip(indexes, places, strict=True)]
        return self.pair_alike(indexes, places)

    def pair_between(self, indexes: range, places: range) -> Iterable[Pair]:
        """Pair the messages of both gaps; if that finds none, only the question that
        the next message answers."""
        pairs = [*self.pair_gap(indexes, places)]
        if pairs or not indexes:
            return pairs
        question = self.find_question(indexes[-1], places)
        return [question] if question else []

    def find_question(self, index: int, places: range) -> Pair | None:
        """It in other words, behind no more than what a client takes out."""
        if self.messages[index].role != "user":
            return None
        for place in places[: -MOST_DROPPED - 2 : -1]:
            text = self.read_text(place) if self.kept[place].role == "user" else None
            if text and find_runs(self.messages[index].text, text):
                return Pair(index, place, is_replaced=True)
        return None

    def pair_begin(self, indexes: range, places: range) -> Sequence[Pair]:
        """Return what stands before the first match, without a summary and a reply to
        it that have the place of as many messages."""
        pairs = [*self.pair_head(indexes, places)]
        own = [n for n, pair in enumerate(pairs) if self._is_own_reply(pair)]
        return pairs[own[-1] + 1 :] if own else pairs

    def _is_own_reply(self, pair: Pair) -> bool:
        is_reply = self.messages[pair.at].role == "assistant"
        return is_reply and pair.is_replaced and bool(self.read_text(pair.place))

    def pair_head(self, indexes: range, places: range) -> Iterable[Pair]:
        """Before the first match: where much more was there, what is left of it is next
        to the match, and the client's own words, such as a summary, are before it."""
        if abs(len(indexes) - len(places)) <= MOST_DROPPED:
            return self.pair_gap(indexes, places)
        pairs: list[Pair] = []
        place = places.stop
        for index in reversed(indexes):
            near = range(place - 1, max(places.start, place - 1 - MOST_DROPPED) - 1, -1)
            pair = next(filter(None, (self._find_within(index, n) for n in near)), None)
            if pair is None:
                break
            pairs.append(pair)
            place = pair.place
        return reversed(pairs)

    def _find_within(self, index: int, place: int) -> Pair | None:
        if self.messages[index].role != self.kept[place].role:
            return None
        pair = self._compare(index, place)
        return pair if pair.likeness and pair.likeness.is_contained else None

    def pair_tail(self, indexes: range, places: range) -> list[Pair]:
        """After the last match: up to a last reply that was wrapped or cut, else
        nothing, since what a person writes next may well be like what was there."""
        pairs = list(self.pair_alike(indexes, places))
        while pairs and not self._is_reply_within(pairs[-1]):
            pairs.pop()
        return pairs

    def _is_reply_within(self, pair: Pair) -> bool:
        is_contained = pair.likeness is not None and pair.likeness.is_contained
        return is_contained and self.kept[pair.place].is_served

    def pair_alike(self, indexes: range, places: range) -> Iterator[Pair]:
        place = places.start
        for index in indexes:
            for each in range(place, min(places.stop, place + MOST_SKIPPED)):
                if self.messages[index].role != self.kept[each].role:
                    continue
                pair = self._compare(index, each)
                if not pair.is_replaced:
                    yield pair
                    place = each + 1
                    break

    def _compare(self, index: int, place: int) -> Pair:
        text = self.read_text(place)
        likeness = compare_texts(self.messages[index].text, text) if text else None
        return Pair(index, place, likeness, is_replaced=likeness is None)

    def _have_equal_roles(self, indexes: range, places: range) -> bool:
        roles = [self.messages[index].role for index in indexes]
        return roles == [self.kept[place].role for place in places]
