"""Find the conversations that a history fits although its chain differs.

The client may have rewritten messages, cut off the beginning or put a summary there.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from functools import cached_property
from typing import NamedTuple

from .alignment import Alignment, Pair, align_history, leave_out_input
from .clients import ClientId
from .evidence import (
    LEAST_CONTAINED,
    LONG,
    MOST_LEADING,
    Evidence,
    count_dropped,
    is_call,
    is_question,
    is_result,
    weigh_alignment,
)
from .history import Message
from .known import MOST_PLACES, Known, Place
from .search import Reach
from .similarity import differ_once, find_runs

# Messages from the end that are searched, conversations that are compared, and texts
# that are read for each of them.
LOOKED_FOR = 16
MOST_CANDIDATES = 8
MOST_NEWEST = 4
MOST_TEXTS = 8
# Messages of a history or conversation that are compared, from the end.
COMPARED = 2_000
# Messages known by their chain that are compared again, as evidence.
COMPARED_AGAIN = 16


class Candidate(NamedTuple):
    """A conversation to compare, with the first message on both sides."""

    place: Place
    first_index: int
    first_position: int
    # Number of messages of the history that its chain proves.
    reach: int


class RewordedQuestions:
    """Reworded questions by index in the history: the new text and the stored one."""

    def __init__(
        self, texts: Mapping[int, tuple[str, str]], same: Set[int] = frozenset()
    ) -> None:
        self.texts = texts
        # Indexes of messages that are known unchanged.
        self.same = same

    @cached_property
    def runs(self) -> dict[int, set[bytes]]:
        return {index: find_runs(*each) for index, each in self.texts.items()}

    @cached_property
    def is_same(self) -> bool:
        has_runs = any(self.runs.values())
        return has_runs and all(differ_once(*each) for each in self.texts.values())

    def list_runs(self, other: "RewordedQuestions") -> set[bytes]:
        """Return the shared runs, except of questions that `other` has unchanged."""
        indexes = self.runs.keys() - other.same
        return {run for index in indexes for run in self.runs[index]}

    def is_as_near_as(self, other: "RewordedQuestions") -> bool:
        runs = self.list_runs(other) ^ other.list_runs(self)
        return len(runs) < LEAST_CONTAINED

    def is_nearer_than(self, other: "RewordedQuestions") -> bool:
        """Return whether more is shared here than in `other`, and not by chance.

        If each has something that the other lacks, such as a search result, neither is
        nearer.
        """
        least = LEAST_CONTAINED
        ours, others = self.list_runs(other), other.list_runs(self)
        return len(ours - others) >= least > len(others - ours)


class Fit(NamedTuple):
    """A conversation that a history fits."""

    place: Place
    # (index in the history, position in the conversation)
    same: list[tuple[int, int]]
    rewritten: list[tuple[int, int]]
    inserted: list[tuple[int, int]]
    # Number of the client's own messages at the beginning, and whether the history
    # lacks the beginning of the conversation.
    leading: int
    is_cut: bool
    # Number of messages of the conversation after the last of these.
    left: int
    evidence: Evidence
    asked: RewordedQuestions
    # After the last message that only this conversation has, something differs from it:
    # the rest, such as calls, may be of another conversation.
    is_loose: bool = False
    # The proof: "words" that only this conversation has, the "client" that names it, or
    # the "question"; "" without proof.
    proof: str = ""

    @property
    def is_whole(self) -> bool:
        """The history has the whole conversation, and before new messages no other.

        Questions may be reworded.
        """
        is_other = self.evidence.strange > self.evidence.reworded
        is_changed = self.leading or self.is_cut or is_other
        return not (self.left or is_changed)

    @property
    def is_long(self) -> bool:
        return max(self.evidence.replies.values(), default=0) >= LONG

    @property
    def last(self) -> tuple[int, int]:
        return max([*self.same, *self.rewritten])


Hits = Mapping[bytes, Sequence[Place]]


def find_fits(
    messages: Sequence[Message], reach: Reach, client: ClientId, known: Known
) -> list[Fit]:
    """Return the proved fits, except those with only a part of another one's proof."""
    found: list[Fit] = []
    hits = known.find_messages([each.digest for each in messages[-LOOKED_FOR:]])
    # New messages can be known, too, if another conversation has them.
    reach = reach._replace(length=min(reach.length, len(leave_out_input(messages))))
    nearest = list_candidates(messages, reach, client, hits)
    for candidates in (nearest, list_newest(messages, client, known)):
        for candidate in candidates:
            comparison = Comparison(messages, candidate, known, hits)
            fit = prove_candidate(comparison, client)
            if fit and fit.last[0] + 1 >= reach.length:
                found.append(_add_reach(fit, reach))
        proved = [fit for fit in found if fit.proof]
        # With many branches, the one that the client wrote in last may be missing.
        if not all(fit.left for fit in proved):
            break
    fits = [
        fit
        for fit in proved
        if not _is_less(fit, list_rivals(fit, found, client, reach))
    ]
    return _choose_allowed(fits, client)


def _choose_allowed(fits: list[Fit], client: ClientId) -> list[Fit]:
    """Return the fits that a trusted client id allows.

    If the id has a conversation that does not fit, only words prove another one.
    """
    if not client.is_trusted or any(each.place.client == client.name for each in fits):
        return fits
    spoken = (each for each in fits if each.proof == "words")
    return [
        each for each in spoken if each.is_long or not (each.leading or each.is_cut)
    ]


def list_rivals(
    fit: Fit, found: Sequence[Fit], client: ClientId, reach: Reach
) -> list[Fit]:
    """Return the fits that compete with this one.

    Copies of the client's own conversation compete only if they have more of the
    history. A conversation without the chain has no more than one with it by what the
    chain proves.
    """
    chained = {each.conversation for each in reach.places}
    if fit.place.conversation in chained:
        within = [each for each in found if each.last[0] < reach.length]
        found = [e for e in found if e not in within or e.place.conversation in chained]
    if not client.is_trusted or fit.place.client != client.name:
        return [*found]
    return [each for each in found if not _is_copy(each, fit)]


def _is_copy(other: Fit, fit: Fit) -> bool:
    if other.place.family != fit.place.family or other.place.client == fit.place.client:
        return False
    more = other.asked.same - fit.asked.same - {at for at, _ in fit.rewritten}
    replies = other.evidence.replies.keys() - fit.evidence.replies.keys()
    return not (more or replies or other.asked.is_nearer_than(fit.asked))


def _is_less(fit: Fit, found: Sequence[Fit]) -> bool:
    if fit.proof == "client":
        # In doubt, a conversation whose question is nearer counts, too.
        found = [
            each
            for each in found
            if each.proof or not each.is_loose or each.asked.is_nearer_than(fit.asked)
        ]
    elif fit.proof == "words":
        found = [each for each in found if each.proof]
    return any(_has_more(other, fit) for other in found)


def prove_candidate(comparison: "Comparison", client: ClientId) -> Fit | None:
    """Return the fit of a candidate with its proof, if it has one.

    If the client names the conversation, its end alone is tried, too: a short reply
    ("OK.") can come back in the form of an earlier one.
    """
    place = comparison.candidate.place
    is_own = bool(client.name) and place.client == client.name
    for by_end in (False, True) if is_own else (False,):
        fit = comparison.compare(by_end=by_end)
        if fit and (proof := name_proof(fit, comparison.messages, client)):
            asked = comparison.compare(by_end=by_end, with_question=True)
            is_kept = asked and name_proof(asked, comparison.messages, client) == proof
            return (asked if is_kept else fit)._replace(proof=proof)
    fit = comparison.compare(with_question=True)
    if fit is None or not fit.evidence.replies:
        return None
    # An agent without an id never continues a conversation that has one.
    if place.client in ("", client.name) and is_asked(fit, comparison):
        is_named = client.is_trusted and is_own
        return fit._replace(proof="client" if is_named else "question")
    has_own = fit.is_loose and fit.evidence.last_own >= 0
    if has_own and (cut := comparison.compare(is_cut=True)):
        return cut._replace(proof=name_proof(cut, comparison.messages, client))
    return fit


def is_asked(fit: Fit, comparison: "Comparison") -> bool:
    """Return whether the question proves the fit.

    Then only calls are known, which others make, too, but they follow a question that
    is equal or reworded.
    """
    if fit.left and (fit.leading or fit.is_cut):
        return False
    if fit.leading > MOST_LEADING or _has_later_reply(fit, comparison.messages):
        return False
    messages = comparison.messages
    there = (messages[at] for at, _ in (*fit.same, *fit.rewritten))
    is_same = fit.evidence.is_same_but_asked and not fit.is_loose
    return is_same and _has_calls(fit, messages) and any(map(is_question, there))


def _add_reach(fit: Fit, reach: Reach) -> Fit:
    """Return the fit without summary and cut if the chain proves them in its family.

    A chain that is known in a branch of the conversation counts for this one, too.
    """
    families = {each.family for each in reach.places}
    return (
        fit._replace(leading=0, is_cut=False) if fit.place.family in families else fit
    )


def _has_more(one: Fit, other: Fit) -> bool:
    """Return whether `one` has all evidence of `other`, and more.

    A nearer question is more if all replies are there, whatever else is reworded.
    """
    ours, others = one.evidence.speaking, other.evidence.speaking
    is_nearer = one.asked.is_nearer_than(other.asked) and not one.is_loose
    has_replies = one.evidence.replies.keys() >= other.evidence.replies.keys()
    if ours > others or (is_nearer and has_replies):
        if one.is_loose != other.is_loose:
            return other.is_loose
        return not one.left or bool(other.left)
    if ours != others or other.asked.is_nearer_than(one.asked):
        return False
    is_one_family = one.place.family == other.place.family
    is_newer = is_one_family and one.left < other.left
    return is_newer or one.asked.is_nearer_than(other.asked)


def name_proof(fit: Fit, messages: Sequence[Message], client: ClientId) -> str:
    evidence = fit.evidence
    # Replies from elsewhere follow, so a short served reply is not enough.
    if _has_later_reply(fit, messages):
        is_proof = evidence.is_proof() and evidence.has_anchors()
        return "words" if is_proof and not fit.is_loose else ""
    if evidence.is_proof() and not fit.is_loose:
        return "words"
    is_own = client.is_trusted and fit.place.client == client.name and not fit.left
    if not is_own or not evidence.is_enough_for_client():
        return ""
    # Calls after the client's own messages need their question, too.
    is_bare = fit.leading and evidence.last_own < 0 and _has_calls(fit, messages)
    # A copy of the conversation has the same calls, with other results.
    is_other = any(is_result(messages[at]) for at, _ in fit.rewritten)
    return "" if is_bare or is_other else "client"


def _has_calls(fit: Fit, messages: Sequence[Message]) -> bool:
    return any(is_call(messages[at]) for at, _ in (*fit.same, *fit.rewritten))


def _has_later_reply(fit: Fit, messages: Sequence[Message]) -> bool:
    return any(each.role == "assistant" for each in messages[fit.last[0] + 1 :])


def list_candidates(
    messages: Sequence[Message], reach: Reach, client: ClientId, hits: Hits
) -> list[Candidate]:
    """Return candidates, best first: by their rarest and latest last message.

    That is usually the newest reply. A message that many have, such as "OK.", ranks
    low. The client's own conversation comes first, unless its id is shared.
    """
    found = {
        each.conversation: Candidate(
            each,
            max(0, reach.length - COMPARED_AGAIN),
            max(0, each.position + 1 - COMPARED_AGAIN),
            reach.length,
        )
        for each in reversed(reach.places)
    }
    ranks = dict.fromkeys(found, (1 / max(1, len(found)), 0))
    own = ((0, 0.0, place) for place in client.places)
    for index, rarity, place in (*_rank_hits(messages, hits), *own):
        found.setdefault(place.conversation, _begin_candidate(messages, place))
        rank = ranks.get(place.conversation, (0.0, 0))
        ranks[place.conversation] = max(rank, (rarity, index))

    def rank_of(candidate: Candidate) -> tuple[bool, float, int]:
        place = candidate.place
        is_own = bool(client.name) and place.client == client.name
        return (is_own and not client.is_shared, *ranks[place.conversation])

    return sorted(found.values(), key=rank_of, reverse=True)[:MOST_CANDIDATES]


def list_newest(
    messages: Sequence[Message], client: ClientId, known: Known
) -> Iterator[Candidate]:
    """Yield the client's newest conversations, for a history without proof.

    A client that changes questions and replies has changed all of a second request.
    """
    tips = client.places or known.find_client("")
    yield from (_begin_candidate(messages, tip) for tip in tips[:MOST_NEWEST])


def _begin_candidate(messages: Sequence[Message], place: Place) -> Candidate:
    first_position = max(0, place.position - len(messages) - MOST_PLACES)
    return Candidate(place, max(0, len(messages) - COMPARED), first_position, 0)


def _rank_hits(
    messages: Sequence[Message], hits: Hits
) -> Iterator[tuple[int, float, Place]]:
    """Yield (index, rarity, place) of the last messages; rarity is 1 / places."""
    first = max(0, len(messages) - LOOKED_FOR)
    digests = {each.digest: first + n for n, each in enumerate(messages[first:])}
    for digest, index in digests.items():
        places = hits.get(digest, ())
        yield from ((index, 1 / len(places), place) for place in places)


class Comparison:
    """Compares a history with a candidate, whose messages are read once."""

    def __init__(
        self,
        messages: Sequence[Message],
        candidate: Candidate,
        known: Known,
        hits: Hits,
    ) -> None:
        place, first_index, first_position, _ = candidate
        path = known.read_path(place.conversation, first_position)
        first_position += max(0, len(path) - COMPARED)
        self.messages, self.hits = messages, hits
        self.part, self.kept = messages[first_index:], path[-COMPARED:]
        self.candidate = candidate._replace(first_position=first_position)
        self.reader = TextReader(known, place.conversation, first_position)

    def compare(
        self, *, by_end: bool = False, with_question: bool = False, is_cut: bool = False
    ) -> Fit | None:
        """Return the fit, or None if no messages match.

        `by_end` compares from the last replies on, by text only. `with_question` also
        pairs a reworded question before the first known message. `is_cut` leaves out
        all after the last pair that only this conversation has.
        """
        candidate, part, kept = self.candidate, self.part, self.kept
        reach, first_index = candidate.reach, candidate.first_index
        alignment = align_history(
            part,
            kept,
            self.reader.read,
            known=self.find_known(),
            by_end=by_end,
            with_question=with_question,
        )
        if reach:
            alignment = _forget_known(alignment, reach - first_index)
        alignment = self.cut_foreign(alignment)
        if not alignment.pairs:
            return None
        evidence = self.weigh(alignment)
        if is_cut:
            alignment = cut_alignment(alignment, evidence.last_own, len(kept))
            evidence = self.weigh(alignment)
        same = {pair.at + first_index for pair in alignment.pairs if pair.is_same}
        asked = RewordedQuestions(
            self.find_asked(alignment.pairs), same | {*range(reach)}
        )
        fit = _describe_fit(candidate, alignment, evidence, asked)
        return fit._replace(is_loose=self.is_loose(alignment, evidence.last_own))

    def find_known(self) -> tuple[int, int] | None:
        """Return index and place of the last message that the chain proves, or None.

        The chain has to contain a served reply. A client's own summary is no proof: it
        is stored after the messages that it repeats.
        """
        place, first_index, first_position, reach = self.candidate
        index, last = reach - 1 - first_index, place.position - first_position
        chain = self.kept[max(0, last + 1 - reach) : max(0, last + 1)]
        is_proof = last < len(self.kept) and any(each.is_served for each in chain)
        return (index, last) if is_proof else None

    def cut_foreign(self, alignment: Alignment) -> Alignment:
        """Cut the alignment before a question that is only known elsewhere.

        Such a question is no rewording of one here, even if later messages match.
        """
        for n, pair in enumerate(alignment.pairs):
            message = self.part[pair.at]
            if pair.is_same or pair.is_contained or not is_question(message):
                continue
            # A text beyond the limit of texts proves nothing.
            if self.is_elsewhere(message.digest) and self.reader.read(pair.place):
                return cut_alignment(alignment, n - 1, len(self.kept))
        return alignment

    def is_elsewhere(self, digest: bytes) -> bool:
        """Return whether only other conversations of the same client id have it."""
        here, places = self.candidate.place, self.hits.get(digest, ())
        if any(each.conversation == here.conversation for each in places):
            return False
        return any(each.client == here.client for each in places)

    def weigh(self, alignment: Alignment) -> Evidence:
        end = alignment.pairs[-1].at + self.candidate.first_index
        return weigh_alignment(
            alignment,
            self.part,
            self.kept,
            is_exact_before=end == self.candidate.reach,
            is_rare=self.is_rare,
        )

    def is_loose(self, alignment: Alignment, last_own: int) -> bool:
        tail = alignment.pairs[max(0, last_own) :]
        if any(index > tail[0].at for index in alignment.inserted):
            return True
        is_other = not all(map(self.says_the_same, tail))
        return is_other or count_dropped(tail, self.kept) > 0

    def says_the_same(self, pair: Pair) -> bool:
        """Return whether both messages say the same.

        They are equal, a reworded question, or a similar served reply.
        """
        if pair.is_same or (pair.likeness and self.kept[pair.place].is_served):
            return True
        if not is_question(self.part[pair.at]):
            return False
        return pair.is_contained or RewordedQuestions(self.find_asked([pair])).is_same

    def is_rare(self, digest: bytes) -> bool:
        places = self.hits.get(digest, ())
        return len(places) < MOST_PLACES and len({p.family for p in places}) == 1

    def find_asked(self, pairs: Sequence[Pair]) -> dict[int, tuple[str, str]]:
        found = {}
        for pair in pairs:
            message = self.part[pair.at]
            if pair.is_same or not is_question(message):
                continue
            if text := self.reader.read(pair.place):
                found[pair.at + self.candidate.first_index] = message.text, text
        return found


def cut_alignment(alignment: Alignment, last: int, total: int) -> Alignment:
    """Cut the alignment after this pair."""
    pairs = alignment.pairs[: last + 1]
    if not pairs:
        return alignment._replace(pairs=[])
    inserted = [index for index in alignment.inserted if index < pairs[-1].at]
    left = total - pairs[-1].place - 1
    return alignment._replace(pairs=pairs, inserted=inserted, left=left)


def _forget_known(alignment: Alignment, reach: int) -> Alignment:
    """Return the alignment without changes to messages that the chain proves."""
    inserted = [index for index in alignment.inserted if index >= reach]
    pairs = [pair for pair in alignment.pairs if pair.is_same or pair.at >= reach]
    return alignment._replace(inserted=inserted, pairs=pairs, leading=0, missing=0)


def _describe_fit(
    candidate: Candidate,
    alignment: Alignment,
    evidence: Evidence,
    asked: RewordedQuestions,
) -> Fit:
    place, first_index, first_position, reach = candidate
    pairs = [
        pair._replace(at=pair.at + first_index, place=pair.place + first_position)
        for pair in alignment.pairs
    ]
    # At equal positions, the client has changed the beginning, not summarized it.
    is_in_step = pairs[0].at == pairs[0].place
    leading = 0 if reach or is_in_step else alignment.leading
    is_cut = not reach and pairs[0].at < pairs[0].place
    return Fit(
        place,
        [(pair.at, pair.place) for pair in pairs if pair.is_same],
        [(pair.at, pair.place) for pair in pairs if not pair.is_same],
        _place_inserted(alignment, first_index, pairs),
        leading,
        is_cut,
        alignment.left,
        evidence,
        asked,
    )


def _place_inserted(
    alignment: Alignment, first_index: int, pairs: Sequence[Pair]
) -> list[tuple[int, int]]:
    placed = []
    later = iter(pairs)
    pair = next(later)
    for index in (each + first_index for each in alignment.inserted):
        while pair.at < index:
            pair = next(later)
        placed.append((index, pair.place))
    return placed


class TextReader:
    """Reads at most MOST_TEXTS texts of a conversation, each once."""

    def __init__(self, known: Known, conversation: str, first: int) -> None:
        self.known = known
        self.conversation = conversation
        self.first = first
        self.texts: dict[int, str] = {}

    def read(self, place: int) -> str | None:
        if place not in self.texts:
            if len(self.texts) == MOST_TEXTS:
                return None
            position = self.first + place
            self.texts[place] = self.known.read_text(self.conversation, position)
        return self.texts[place]
