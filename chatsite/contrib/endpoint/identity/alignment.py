"""The alignment of a history with a stored conversation.

Equal messages are matched by digest so that as many served replies as possible stay in
order; messages between two matches are compared by text. Replies count most because a
client can only have them from this site. A text that a client repeats in every request,
such as a constant last block, can be matched by chance.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .history import Message
from .known import PathMessage
from .similarity import Likeness, compare_texts, find_runs

# A message that occurs more often than this is not matched: any place could be right.
MOST_TWINS = 4
# A served reply outweighs all other messages.
SERVED_WEIGHT = 1_000_000
# Messages that a client may drop between two others, such as its own reminders.
MOST_DROPPED = 2
# Bytes that a reply needs to be no mere "OK.".
SHORT = 24
# How far ahead a message is searched between two matches.
MOST_SKIPPED = 4


class Pair(NamedTuple):
    """A message of the history, and its counterpart in the conversation."""

    at: int
    # Index in the part of the conversation that was read.
    place: int
    # None if both are equal.
    likeness: Likeness | None = None
    # The same place and role, with a different text.
    is_replaced: bool = False

    @property
    def is_same(self) -> bool:
        return self.likeness is None and not self.is_replaced

    @property
    def is_contained(self) -> bool:
        """One text is a part of the other."""
        return self.likeness is not None and self.likeness.is_contained


class Alignment(NamedTuple):
    """Pairs in order, and the messages of both sides that have none."""

    pairs: list[Pair]
    inserted: list[int]
    # Messages at the beginning of the history that the conversation lacks.
    leading: int
    # Messages of the conversation that were read and precede the first pair.
    missing: int
    # Messages of the conversation after the last pair.
    left: int


ReadText = Callable[[int], str | None]


def align_history(
    messages: Sequence[Message],
    kept: Sequence[PathMessage],
    read_text: ReadText,
    *,
    known: tuple[int, int] | None = None,
    by_end: bool = False,
    with_question: bool = False,
) -> Alignment:
    """Align a history with a stored conversation.

    `read_text` returns the text of a stored message by its place, or None when the
    limit of texts is reached. `known` is the last pair that the chain proves.
    `by_end` compares backwards from the last replies, by text only. `with_question`
    also pairs a reworded question before the first match.
    """
    messages = leave_out_input(messages)
    aligner = Aligner(messages, kept, read_text)
    matches = [] if by_end else match_around(messages, kept, known)
    alignment = aligner.align(matches)
    return aligner.add_question(alignment) if with_question else alignment


def leave_out_input(messages: Sequence[Message]) -> Sequence[Message]:
    """Return the messages up to the last reply.

    Later ones are new, even if the client repeats the same text in every request.
    """
    end = len(messages)
    while end and messages[end - 1].role != "assistant":
        end -= 1
    return messages[:end]


def match_around(
    messages: Sequence[Message],
    kept: Sequence[PathMessage],
    known: tuple[int, int] | None,
) -> list[tuple[int, int]]:
    """Match the messages before and after the pair that the chain proves.

    Equal messages directly before that pair are matched one to one: an agent that
    repeats its steps has all of them twice.
    """
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
    messages: Sequence[Message], kept: Sequence[PathMessage]
) -> list[tuple[int, int]]:
    """Return the heaviest list of equal messages that is in order on both sides."""
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
    """A Fenwick tree that finds the heaviest entry before a place.

    Both operations take logarithmic time. Of equal weights the first entry wins: a
    later one may be the same text, wrapped.
    """

    def __init__(self, size: int) -> None:
        self.best = [NOTHING] * (size + 1)

    def find(self, place: int) -> tuple[int, int]:
        """Return the weight of the heaviest entry, and the negative of its step."""
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


@dataclass(frozen=True, slots=True)
class Aligner:
    """Compares the messages between matches by their texts."""

    messages: Sequence[Message]
    kept: Sequence[PathMessage]
    read_text: ReadText

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
        """Return the pairs after a client's own reply to a summary ("Understood.").

        A client may give the same reply to an earlier summary, or had it ("OK.") from
        this site. It is recognized by served replies that the client has dropped
        between it and the next served pair.
        """
        served = [n for n, pair in enumerate(pairs) if self.kept[pair.place].is_served]
        for n in reversed(range(next(iter(served), -1) + 1)):
            place = pairs[n].place
            later = next((pairs[m].place for m in served if m > n), 0)
            is_reply = self.kept[place].role == "assistant"
            if n in served:
                is_reply = n == 0 < pairs[0].at and self.kept[place].size < SHORT
            if is_reply and any(
                each.is_served for each in self.kept[place + 1 : later]
            ):
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
        """Pair the last replies and the messages before them, if none are equal."""
        index, place = len(self.messages) - 1, len(self.kept) - 1
        last = self._find_within(index, place) if min(index, place) >= 0 else None
        if last is None:
            return []
        return [*self.pair_head(range(index), range(place)), last]

    def pair_gap(self, indexes: range, places: range) -> Iterable[Pair]:
        """Pair the messages between two matches."""
        if len(indexes) == len(places) and self._have_equal_roles(indexes, places):
            return [self._compare(*each) for each in zip(indexes, places, strict=True)]
        return self.pair_alike(indexes, places)

    def pair_between(self, indexes: range, places: range) -> Iterable[Pair]:
        """Pair the messages of both gaps.

        If none match, pair only the question that the next message answers.
        """
        pairs = [*self.pair_gap(indexes, places)]
        if pairs or not indexes:
            return pairs
        question = self.find_question(indexes[-1], places)
        return [question] if question else []

    def find_question(self, index: int, places: range) -> Pair | None:
        """Return the pair of a reworded question, or None.

        At most MOST_DROPPED messages may follow it in the conversation's gap.
        """
        if self.messages[index].role != "user":
            return None
        for place in places[: -MOST_DROPPED - 2 : -1]:
            text = self.read_text(place) if self.kept[place].role == "user" else None
            if text and find_runs(self.messages[index].text, text):
                return Pair(index, place, is_replaced=True)
        return None

    def pair_begin(self, indexes: range, places: range) -> Sequence[Pair]:
        """Pair the messages before the first match.

        A client's summary, and its own reply to it, are left out if they replace as
        many messages.
        """
        pairs = [*self.pair_head(indexes, places)]
        own = [n for n, pair in enumerate(pairs) if self._is_own_reply(pair)]
        return pairs[own[-1] + 1 :] if own else pairs

    def _is_own_reply(self, pair: Pair) -> bool:
        is_reply = self.messages[pair.at].role == "assistant"
        return is_reply and pair.is_replaced and bool(self.read_text(pair.place))

    def pair_head(self, indexes: range, places: range) -> Iterable[Pair]:
        """Pair the messages before the first match.

        If one side has many more messages, those that are left are directly before the
        match, and the client's own texts, such as a summary, are before them.
        """
        is_near = abs(len(indexes) - len(places)) <= MOST_DROPPED
        if is_near and self._have_equal_roles(indexes, places):
            return self.pair_gap(indexes, places)
        pairs: list[Pair] = []
        index, place = indexes.stop, places.stop
        while index > indexes.start:
            near = range(place - 1, max(places.start, place - 1 - MOST_DROPPED) - 1, -1)
            found = (self._find_within(index - 1, n) for n in near)
            if not (pair := next(filter(None, found), None)):
                break
            pairs.append(pair)
            index, place = pair[:2]
        begin = range(indexes.start, index), range(places.start, place)
        return [*(self.pair_gap(*begin) if is_near else ()), *reversed(pairs)]

    def _find_within(self, index: int, place: int) -> Pair | None:
        if self.messages[index].role != self.kept[place].role:
            return None
        pair = self._compare(index, place)
        return pair if pair.is_contained else None

    def pair_tail(self, indexes: range, places: range) -> list[Pair]:
        """Pair the messages after the last match, up to a wrapped or cut reply.

        Without such a reply nothing is paired, as the user's next message may well
        resemble a stored one.
        """
        pairs = list(self.pair_alike(indexes, places))
        while pairs and not self._is_reply_within(pairs[-1]):
            pairs.pop()
        return pairs

    def _is_reply_within(self, pair: Pair) -> bool:
        return pair.is_contained and self.kept[pair.place].is_served

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
