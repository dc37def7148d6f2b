"""Which conversation a history goes on: decided from what a store knows, written
nowhere. In doubt it is a new one.

`decide_lineage` and the writing of its decision have to be one step for a person: two
requests that are decided at once could otherwise both go on from the same message.
"""

from collections.abc import Iterable, Sequence

from .alignment import leave_out_input
from .clients import ClientId
from .decision import Decision, Kind
from .evidence import LONG, is_question
from .fits import Fit, find_fits
from .hints import Hints
from .history import GENESIS, History, Message
from .known import Kept, Known, Place
from .search import Reach, find_reach
from .similarity import share_little

# How many messages before a branch are searched for a served reply, and of a changed
# history, how many before what is new have their chains kept.
LOOKED_BACK = 64
KEPT_BACK = 32
# What a client says itself of a request, whatever instructions it has.
BELIEVED = frozenset({"hint-compacted", "retry-key"})


def decide_lineage(
    history: History, hints: Hints, known: Known, previous: Place | None = None
) -> Decision:
    """`previous`: the reply that the client names instead of sending what came before;
    the history has its chain as its base."""
    deciding = Deciding(history, hints, known)
    decision = deciding.decide_after(previous) if previous else deciding.decide()
    return set_aside(decision) if deciding.is_side_call(decision) else decision


class Deciding:
    """One decision, with what was looked up for it."""

    def __init__(self, history: History, hints: Hints, known: Known) -> None:
        self.history = history
        self.messages = history.messages
        self.is_after = history.base != GENESIS
        self.hints = hints
        self.known = known
        self.client = ClientId(hints, known)

    def decide(self) -> Decision:
        if not self.messages:
            return self.begin_new("unknown")
        reach = find_reach(self.messages, self.known)
        reach = reach._replace(places=self.client.narrow_places(reach.places))
        if reach.length == len(self.messages):
            return self.decide_whole(reach.places)
        if tip := next((each for each in reach.places if each.is_tip), None):
            return self.go_on(tip, reach.length)
        return self.decide_changed(reach)

    def decide_after(self, previous: Place) -> Decision:
        """Its id is known to whom it was told, so it is proof."""
        reach = find_reach(self.messages, self.known)
        same = [each for each in reach.places if each.family == previous.family]
        if same and reach.length == len(self.messages):
            return self.decide_whole(same)
        if previous.is_tip and not self.client.begins_a_copy(previous):
            return self.make("continued", previous, 0, "previous")
        return self.make("branch", previous, 0, "previous")

    def decide_whole(self, places: Sequence[Place]) -> Decision:
        """All is known: sent again, to be gone on with, or for another reply."""
        total = len(self.messages)
        if retried := self.find_retried(places):
            return retried
        if self.messages[-1].role == "assistant" and places[0].is_tip:
            return self.make("continued", places[0], total, "prefill")
        reach = Reach(total, places)
        if waiting := self.find_waiting() or self.find_own(reach):
            return waiting
        return self.branch_off(reach, "whole")

    def find_own(self, reach: Reach) -> Decision | None:
        """The same where only its questions are in other words."""
        name = self.client.name
        if not self.client.is_trusted or any(p.client == name for p in reach.places):
            return None
        fits = find_fits(self.messages, reach, self.client, self.known)
        own = [fit for fit in fits if fit.is_whole and fit.place.client == name]
        return self.choose_fit(own) if own else None

    def find_waiting(self) -> Decision | None:
        """A conversation with the client's id that ends with the last reply, where
        another one has what follows, too: two agents or branches found the same."""
        name, said = self.client.name, leave_out_input(self.messages)
        found = self.known.find_chains([said[-1].chain]) if said else {}
        for each in next(iter(found.values()), ()):
            if each.is_tip and each.client == name:
                return self.go_on(each, len(said))
        return None

    def find_retried(self, places: Sequence[Place]) -> Decision | None:
        total = len(self.messages)
        if key := self.hints.idempotency_key:
            earlier = self.known.find_request(key)
            for place in places:
                if earlier and place[:2] == earlier[:2]:
                    return self.make("retry", place, total, "retry-key")
        # A side call that failed, too, has the same history.
        most_first = sorted(places, key=lambda each: each.is_single)
        if waiting := next((each for each in most_first if each.is_open), None):
            return self.make("retry", waiting, total, "open")
        if self.hints.is_retry:
            return self.make("retry", places[0], total, "retry-header")
        return None

    def go_on(self, tip: Place, count: int) -> Decision:
        if self.client.begins_a_copy(tip):
            return self.make_branch(tip, count, "tip")
        if _is_compaction(self.messages[count - 1]):
            return self.make("client-compacted", tip, count, "compaction")
        return self.make("continued", tip, count, "tip")

    def decide_changed(self, reach: Reach) -> Decision:
        """The chain ends inside of a conversation, or nothing of it is known."""
        is_edit = not _has_reply(self.messages[reach.length :])
        if fits := find_fits(self.messages, reach, self.client, self.known):
            whole = [fit for fit in fits if fit.is_whole]
            if whole or not is_edit:
                return self.choose_fit(whole or fits)
        if reach.length:
            return self.branch_off(reach, "inside")
        if self.hints.is_compacted and self.client.is_trusted and self.client.tip:
            return self.go_on_compacted(self.client.tip)
        return self.begin_new("unknown")

    def branch_off(self, reach: Reach, why: str) -> Decision:
        """From a place after a served reply: what only people wrote, such as the same
        first message, may be the beginning of any number of conversations."""
        place = reach.places[0]
        first = max(0, place.position + 1 - LOOKED_BACK)
        path = self.known.read_path(place.conversation, first)
        served = _sizes_of_replies(path[: place.position + 1 - first])
        # A client's summary of what was served, and its own reply to it, are not that.
        own = {each.digest for each in path} - served.keys()
        replies = filter(_is_reply, self.messages[: reach.length])
        is_told = self.is_after or any(each.digest not in own for each in replies)
        if not served or not is_told:
            is_first = reach.length == len(self.messages)
            return self.begin_new("equal-first" if is_first else "no-served-reply")
        if len({each.family for each in reach.places}) > 1:
            return self.begin_new("two-fit")
        has_claims = _has_reply(self.messages[reach.length :])
        if has_claims and len(served) < 2 and max(served.values()) < LONG:
            return self.begin_new("unknown-replies")
        return self.make_branch(place, reach.length, why)

    def choose_fit(self, fits: Sequence[Fit]) -> Decision:
        own = [fit for fit in fits if fit.place.client == self.client.name]
        if self.client.name and own and not self.client.is_shared:
            fits = own
        if len({fit.place.family for fit in fits}) > 1:
            fits = self.find_newest_own(fits)
        if not fits:
            return self.begin_new("two-fit")
        fit = min(fits, key=_doubt)
        is_copy = self.client.begins_a_copy(fit.place)
        if fit.left or is_copy:
            return self.describe_fit("branch", fit)
        kind: Kind = "client-compacted" if fit.leading or fit.is_cut else "continued"
        return self.describe_fit(kind, fit)

    def find_newest_own(self, fits: Sequence[Fit]) -> list[Fit]:
        """Return, of several that say the same because the client asked twice, the one
        that it wrote in last: where it names them, or they have its question."""
        unnamed = [each for each in fits if not each.place.client]
        if not self.client.name and len(unnamed) == 1 and unnamed[0].is_whole:
            return unnamed
        tips = self.client.places
        if all(fit.proof == "question" for fit in fits):
            near = [fit for fit in fits if fit.asked.is_as_near_as(fits[0].asked)]
            tips = tips or (self.known.find_client("") if near == fits else ())
        ages = {each.conversation: n for n, each in enumerate(tips)}
        if not all(fit.is_whole and fit.place.conversation in ages for fit in fits):
            return []
        return [min(fits, key=lambda fit: ages[fit.place.conversation])]

    def describe_fit(self, kind: Kind, fit: Fit) -> Decision:
        last, position = fit.last
        kept_back = 1 if kind == "branch" else KEPT_BACK
        aligned = sorted([*fit.same, *fit.rewritten])
        why = [("suffix" if fit.leading else "head-cut") if fit.is_cut else "rewritten"]
        return Decision(
            kind,
            fit.place.conversation,
            position + 1,
            last + 1,
            summary=fit.leading if kind == "client-compacted" else 0,
            rewritten=tuple(fit.rewritten),
            inserted=tuple(fit.inserted),
            aligned=tuple(each for each in aligned if each[0] > last - kept_back),
            why=(*self.client.explain(fit.place), *why),
        )

    def go_on_compacted(self, tip: Place) -> Decision:
        """The client says itself that it has forgotten what was before."""
        count = len(self.messages) - 1
        made = self.make("client-compacted", tip, count, "hint-compacted")
        return made._replace(summary=count)

    def make(self, kind: Kind, place: Place, first_new: int, why: str) -> Decision:
        codes = (*self.client.explain(place), why)
        position = place.position + 1
        return Decision(kind, place.conversation, position, first_new, why=codes)

    def make_branch(self, place: Place, first_new: int, why: str) -> Decision:
        """The branch is known by the chain where it begins, too: what follows there may
        come back changed."""
        made = self.make("branch", place, first_new, why)
        return made._replace(aligned=((first_new - 1, place.position),))

    def is_side_call(self, decision: Decision) -> bool:
        """Return whether another agent of the client asks something beside this
        conversation. With results alone, it has taken the conversation over."""
        if decision.conversation is None or decision.why[-1] in BELIEVED:
            return False
        new = self.messages[decision.first_new :]
        own = "\n\n".join(self.history.instructions)
        if not own or (new and not any(map(is_question, new))):
            return False
        before = self.known.read_instructions(decision.conversation)
        if not before or not share_little(own, before):
            return False
        # One that spoke in it before is no other: agents hand it to each other.
        agent = own, self.history.tools
        return not self.known.has_spoken(decision.conversation, *agent)

    def begin_new(self, why: str) -> Decision:
        kind: Kind = "single" if len(self.messages) == 1 else "new"
        codes = ("one-message",) if kind == "single" and why == "unknown" else (why,)
        return Decision(kind, linked=self.find_linked(), why=codes)

    def find_linked(self) -> str | None:
        if tip := self.client.tip:
            return tip.conversation
        parents = self.known.find_client(self.hints.parent) if self.hints.parent else ()
        return parents[0].conversation if parents else None


def set_aside(decision: Decision) -> Decision:
    """The same request as a branch, which leaves the conversation where it ends."""
    count, position = decision.first_new, decision.parent_position
    last = ((count - 1, position - 1),) if count else ()
    why = (*decision.why[:-1], "side")
    return decision._replace(
        kind="branch", summary=0, aligned=decision.aligned[-1:] or last, why=why
    )


def _doubt(fit: Fit) -> tuple[bool, bool, int, int, int]:
    """Least for what goes on at an end, with all that is its own, says the same, has
    the most of it, and that in the fewest other words."""
    evidence, rewritten = fit.evidence, len(fit.rewritten)
    other = evidence.alike + evidence.reworded
    return bool(fit.left), fit.is_loose, other, -evidence.size, rewritten


def _is_compaction(message: Message) -> bool:
    """The provider's own short form of all that came before."""
    return any('"type":"compaction"' in part.get("other", "") for part in message.parts)


def _sizes_of_replies(path: Iterable[Kept]) -> dict[bytes, int]:
    return {each.digest: each.size for each in path if each.is_served}


def _is_reply(message: Message) -> bool:
    return message.role == "assistant"


def _has_reply(messages: Iterable[Message]) -> bool:
    return any(map(_is_reply, messages))
