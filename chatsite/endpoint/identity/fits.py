"""Conversations that a history fits though its chain is not theirs: the client has
rewritten messages, cut off the beginning or put a summary there."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .alignment import Alignment, Pair, align_history
from .clients import ClientId
from .evidence import Evidence, weigh_alignment
from .history import Message
from .known import MOST_PLACES, Known, Place
from .search import Reach

# Messages from the end that are looked for, conversations that are compared, and texts
# that are read for it.
LOOKED_FOR = 16
MOST_CANDIDATES = 8
MOST_NEWEST = 4
MOST_TEXTS = 8
# Of longer histories and conversations, only the ends are compared.
COMPARED = 2_000
# So much of what is known by its chain is compared again, as evidence.
COMPARED_AGAIN = 16


class Candidate(NamedTuple):
    """A conversation, and where to begin in the history and in it."""

    place: Place
    first_index: int
    first_position: int
    # So many messages of the history are known in it by their chain.
    reach: int


class Fit(NamedTuple):
    """A conversation that a history fits."""

    place: Place
    # (index in the history, position in the conversation)
    same: list[tuple[int, int]]
    rewritten: list[tuple[int, int]]
    inserted: list[tuple[int, int]]
    # Messages of the client's own before all others, and whether messages of the
    # conversation are not in the history.
    leading: int
    is_cut: bool
    # Messages of the conversation after the last one of these.
    left: int
    evidence: Evidence

    @property
    def is_whole(self) -> bool:
        """The history has all of it, and all before what is new is of it."""
        is_changed = self.leading or self.is_cut or self.evidence.strange
        return not (self.left or is_changed)

    @property
    def last(self) -> tuple[int, int]:
        return max([*self.same, *self.rewritten])


def find_fits(
    messages: Sequence[Message], reach: Reach, client: ClientId, known: Known
) -> list[Fit]:
    """All that are proved, but for those that have only a part of another's proof."""
    fits: list[Fit] = []
    for find in (list_candidates, list_newest):
        for candidate in find(messages, reach, client, known):
            fit = prove_candidate(messages, candidate, client, known)
            if fit:
                fits.append(_add_reach(fit, reach))
        # Of many branches, the one that the client wrote in last may be missing there.
        if fits and not (client.name and all(fit.left for fit in fits)):
            break
    return [fit for fit in fits if not any(_has_more(other, fit) for other in fits)]


def prove_candidate(
    messages: Sequence[Message], candidate: Candidate, client: ClientId, known: Known
) -> Fit | None:
    """Where the client names the conversation, also by its end alone: a short reply can
    come back in the form of another one before it ("OK.")."""
    is_own = bool(client.name) and candidate.place.client == client.name
    for by_end in (False, True) if is_own else (False,):
        fit = fit_candidate(messages, candidate, known, by_end=by_end)
        if fit and is_proved(fit, messages, client):
            return fit
    return None


def _add_reach(fit: Fit, reach: Reach) -> Fit:
    """What a branch of the conversation knows by its chain is known of this one, too:
    a summary and a cut before it are nothing new."""
    families = {each.family for each in reach.places}
    is_within = fit.place.family in families and fit.last[0] + 1 >= reach.length
    return fit._replace(leading=0, is_cut=False) if is_within else fit


def _has_more(one: Fit, other: Fit) -> bool:
    """In another conversation or not: all that speaks for the other one, and more."""
    if one.evidence.known.keys() > other.evidence.known.keys():
        return not one.left or bool(other.left)
    is_equal = one.evidence.known.keys() == other.evidence.known.keys()
    return is_equal and one.place.family == other.place.family and one.left < other.left


def is_proved(fit: Fit, messages: Sequence[Message], client: ClientId) -> bool:
    evidence = fit.evidence
    # Other replies than those of here follow: this needs more than a short one.
    later = messages[fit.last[0] + 1 :]
    if any(each.role == "assistant" for each in later):
        return evidence.is_proof() and evidence.has_anchors()
    is_own = client.is_trusted and fit.place.client == client.name and not fit.left
    return evidence.is_proof() or (is_own and evidence.is_enough_for_client())


def list_candidates(
    messages: Sequence[Message], reach: Reach, client: ClientId, known: Known
) -> list[Candidate]:
    """By the rarest of the last messages that they have, and the latest of those: that
    is mostly the newest reply. What many have, such as "OK.", leads nowhere."""
    found = {
        each.conversation: Candidate(
            each,
            max(0, reach.length - COMPARED_AGAIN),
            max(0, each.position + 1 - COMPARED_AGAIN),
            reach.length,
        )
        for each in reach.places
    }
    ranks = dict.fromkeys(found, (1 / max(1, len(found)), 0))
    first_index = max(0, len(messages) - COMPARED)
    for index, rarity, place in _find_hits(messages, known):
        reached = place.position - len(messages) - MOST_PLACES
        first = Candidate(place, first_index, max(0, reached), 0)
        found.setdefault(place.conversation, first)
        rank = ranks.get(place.conversation, (0.0, 0))
        ranks[place.conversation] = max(rank, (rarity, index))

    def rank_of(candidate: Candidate) -> tuple[bool, float, int]:
        place = candidate.place
        is_own = bool(client.name) and place.client == client.name
        return (is_own and not client.is_shared, *ranks[place.conversation])

    return sorted(found.values(), key=rank_of, reverse=True)[:MOST_CANDIDATES]


def list_newest(
    messages: Sequence[Message], _reach: Reach, client: ClientId, known: Known
) -> list[Candidate]:
    """For a history of which nothing proves it as it is: a client that changes both
    questions and replies has changed all of a second request."""
    tips = client.places or known.find_client("")
    return [
        Candidate(tip, 0, max(0, tip.position - len(messages) - MOST_PLACES), 0)
        for tip in tips[:MOST_NEWEST]
    ]


def _find_hits(
    messages: Sequence[Message], known: Known
) -> Iterator[tuple[int, float, Place]]:
    """Where the last messages are known: (index, how rare the message is, place)."""
    first = max(0, len(messages) - LOOKED_FOR)
    digests = {each.digest: first + n for n, each in enumerate(messages[first:])}
    found = known.find_messages([*digests])
    for digest, index in digests.items():
        places = found.get(digest, ())
        yield from ((index, 1 / len(places), place) for place in places)


def fit_candidate(
    messages: Sequence[Message],
    candidate: Candidate,
    known: Known,
    *,
    by_end: bool = False,
) -> Fit | None:
    place, first_index, first_position, reach = candidate
    path = known.read_path(place.conversation, first_position)
    kept = path[-COMPARED:]
    first_position += len(path) - len(kept)
    reader = TextReader(known, place.conversation, first_position)
    part = messages[first_index:]
    alignment = align_history(part, kept, reader.read, by_end=by_end)
    if reach:
        alignment = _forget_known(alignment, reach - first_index)
    if not alignment.pairs:
        return None
    is_exact_before = alignment.pairs[-1].at + first_index == reach
    evidence = weigh_alignment(alignment, part, kept, is_exact_before=is_exact_before)
    moved = candidate._replace(first_position=first_position)
    return _describe_fit(moved, alignment, evidence)


def _forget_known(alignment: Alignment, reach: int) -> Alignment:
    """What is known by its chain is nothing of the client's own."""
    inserted = [index for index in alignment.inserted if index >= reach]
    pairs = [pair for pair in alignment.pairs if pair.is_same or pair.at >= reach]
    return alignment._replace(inserted=inserted, pairs=pairs, leading=0, missing=0)


def _describe_fit(
    candidate: Candidate, alignment: Alignment, evidence: Evidence
) -> Fit:
    place, first_index, first_position, reach = candidate
    pairs = [
        pair._replace(at=pair.at + first_index, place=pair.place + first_position)
        for pair in alignment.pairs
    ]
    # A long history with another beginning is as long as the conversation is.
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
    """A few texts of a conversation, each read once."""

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
