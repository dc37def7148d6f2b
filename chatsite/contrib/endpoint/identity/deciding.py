"""The decision which conversation a history continues. In doubt it is a new one.

Nothing here writes. Deciding and storing the decision must be one step per user:
otherwise two requests at once could both continue from the same message.
"""

from collections.abc import Iterable, Sequence

from .alignment import leave_out_input
from .clients import ClientId
from .decision import Decision, Kind
from .evidence import LONG, is_question
from .fits import Fit, find_fits
from .hints import Hints
from .history import GENESIS, History, Message
from .known import Known, Place
from .search import Reach, find_reach
from .similarity import compare_texts, share_little

# LOOKED_BACK: messages before a branch that are searched for a served reply.
# KEPT_BACK: messages of a changed history, before the new ones, whose chains are kept.
LOOKED_BACK = 64
KEPT_BACK = 32
# Reasons that come from the client itself: instructions cannot make it a side call.
BELIEVED = frozenset({"hint-compacted", "retry-key"})


def decide_lineage(
    history: History, hints: Hints, known: Known, previous: Place | None = None
) -> Decision:
    """Decide which conversation a history continues.

    `previous` is the reply that the client names instead of sending the messages before
    it; the chain of that reply is the base of the history.
    """
    deciding = Deciding(history, hints, known)
    decision = deciding.decide_after(previous) if previous else deciding.decide()
    return set_aside(decision) if deciding.is_side_call(decision) else decision


class Deciding:
    """One decision, with the data that was read for it."""

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
            return self.find_own(reach) or self.go_on(tip, reach.length)
        return self.decide_changed(reach)

    def decide_after(self, previous: Place) -> Decision:
        """Decide by a named reply: only a client that received its id can know it."""
        reach = find_reach(self.messages, self.known)
        same = [each for each in reach.places if each.family == previous.family]
        if same and reach.length == len(self.messages):
            return self.decide_whole(same)
        if previous.is_tip and not self.client.begins_a_copy(previous):
            return self.make("continued", previous, 0, "previous")
        return self.make("branch", previous, 0, "previous")

    def decide_whole(self, places: Sequence[Place]) -> Decision:
        """Decide for a known history: a retry, a prefill or a request for a reply."""
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
        """Return a decision for the client's conversation if the chain leads elsewhere.

        Of what the chain has word for word, only questions may differ: by a stamp
        around them. If they are only similar, it is in doubt.
        """
        name = self.client.name
        if not self.client.places or any(p.client == name for p in reach.places):
            return None
        fits = find_fits(self.messages, reach, self.client, self.known)
        own = [fit for fit in fits if fit.is_whole and fit.place.client == name]
        own = [fit for fit in own if self.asks_alike(fit, reach.length)]
        wrapped = [e for e in own if all(map(_is_wrapped, e.asked.texts.values()))]
        if own and not wrapped:
            return self.begin_new("two-fit")
        return self.choose_fit(wrapped) if wrapped else None

    def asks_alike(self, fit: Fit, reach: int) -> bool:
        """Return whether only questions differ from what the chain has, and little."""
        changed = (self.messages[at] for at, _ in fit.rewritten if at < reach)
        return not fit.evidence.strange and all(map(is_question, changed))

    def find_waiting(self) -> Decision | None:
        """Continue the client's conversation that ends with the last reply, if any.

        Another conversation has the messages after that reply, too: two agents or
        branches found the same.
        """
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
        # A failed side call has the same history, so single calls come last.
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
        """Decide for a chain that ends inside a conversation, or is unknown."""
        is_edit = not _has_reply(self.messages[reach.length :])
        found = find_fits(self.messages, reach, self.client, self.known)
        if fits := [
            fit for fit in found if not self.rewords_known_question(fit, reach)
        ]:
            whole = [fit for fit in fits if fit.is_whole]
            if whole or not is_edit:
                return self.choose_fit(whole or fits)
        if reach.length:
            return self.branch_off(reach, "inside")
        if self.hints.is_compacted and self.client.is_trusted and self.client.tip:
            return self.go_on_compacted(self.client.tip)
        return self.begin_new("unknown")

    def rewords_known_question(self, fit: Fit, reach: Reach) -> bool:
        """Return whether the fit has other words for a question that a branch has.

        Then the user edited that last question, and the history goes on in the branch.
        A question with a stamp around the same words is still the same.
        """
        chained = {each.conversation for each in reach.places}
        families = {each.family for each in reach.places}
        if fit.place.conversation in chained or fit.place.family not in families:
            return False
        asked = range(reach.length - 1, -1, -1)
        last = next((at for at in asked if is_question(self.messages[at])), -1)
        if last not in fit.asked.texts:
            return False
        return not _is_wrapped(fit.asked.texts[last])

    def branch_off(self, reach: Reach, why: str) -> Decision:
        """Branch off after a served reply, or begin a new conversation.

        Messages of users alone, such as an equal first message, may begin any number of
        conversations.
        """
        place = reach.places[0]
        first = max(0, place.position + 1 - LOOKED_BACK)
        path = self.known.read_path(place.conversation, first)
        path_before = path[: place.position + 1 - first]
        served = {each.digest: each.size for each in path_before if each.is_served}
        # A client's own reply to its summary was not served and proves nothing.
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
        if self.client.name and own:
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
        """Return the fit in the conversation that the client wrote in last.

        For equal conversations, as of a client that asked twice: it has to name them,
        or they have its question. Without such a fit the list is empty.
        """
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
        """Continue a conversation that the client reports as compacted."""
        count = len(self.messages) - 1
        made = self.make("client-compacted", tip, count, "hint-compacted")
        return made._replace(summary=count)

    def make(self, kind: Kind, place: Place, first_new: int, why: str) -> Decision:
        codes = (*self.client.explain(place), why)
        position = place.position + 1
        return Decision(kind, place.conversation, position, first_new, why=codes)

    def make_branch(self, place: Place, first_new: int, why: str) -> Decision:
        """Make a branch, with the chain of the message where it begins.

        It is found by that chain even if its first messages come back changed.
        """
        made = self.make("branch", place, first_new, why)
        return made._replace(aligned=((first_new - 1, place.position),))

    def is_side_call(self, decision: Decision) -> bool:
        """Return whether another agent asks something beside this conversation.

        An agent that sends tool results only has taken the conversation over.
        """
        if decision.conversation is None or decision.why[-1] in BELIEVED:
            return False
        new = self.messages[decision.first_new :]
        own = "\n\n".join(self.history.instructions)
        if not own or (new and not any(map(is_question, new))):
            return False
        before = self.known.read_instructions(decision.conversation)
        if not before or not share_little(own, before):
            return False
        # An agent with earlier requests there belongs to it: agents take turns.
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
    """Return the decision as a branch, which leaves the end of the conversation."""
    count, position = decision.first_new, decision.parent_position
    last = ((count - 1, position - 1),) if count else ()
    why = (*decision.why[:-1], "side")
    return decision._replace(
        kind="branch", summary=0, aligned=decision.aligned[-1:] or last, why=why
    )


def _doubt(fit: Fit) -> tuple[bool, bool, int, int, int]:
    """Return a sort key, smallest for the best fit.

    In order: ends at a tip, is not loose, has the fewest reworded messages, the most
    evidence, and the fewest rewritten messages.
    """
    evidence, rewritten = fit.evidence, len(fit.rewritten)
    other = evidence.alike + evidence.reworded
    return bool(fit.left), fit.is_loose, other, -evidence.size, rewritten


def _is_wrapped(texts: tuple[str, str]) -> bool:
    likeness = compare_texts(*texts)
    return bool(likeness and likeness.is_contained)


def _is_compaction(message: Message) -> bool:
    """Return whether this is a provider's own summary of all earlier messages."""
    return any('"type":"compaction"' in part.get("other", "") for part in message.parts)


def _is_reply(message: Message) -> bool:
    return message.role == "assistant"


def _has_reply(messages: Iterable[Message]) -> bool:
    return any(map(_is_reply, messages))
