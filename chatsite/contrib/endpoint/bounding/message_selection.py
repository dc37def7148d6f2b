"""The choice of the client's messages that are sent.

They are those that no summary covers, after the summaries. Between two compactions
every body begins with the one before it.

Where even that is too long, because nothing could be summarised yet, the oldest turns
are left out, as in the chat.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, chain
from math import ceil
from typing import NamedTuple

from django.db.models import Max
from langchain_core.messages import BaseMessage, HumanMessage

from chatsite.contrib.endpoint.identity.decision import Decision
from chatsite.contrib.endpoint.models import ClientConversation, ClientMessage
from chatsite.contrib.endpoint.store.bodies import SentPiece
from memory import context, versions
from memory.engine.cut_points import find_cut_points, find_newest_question
from memory.engine.tokens import count_message, count_tokens
from memory.models import Summary
from memory.ranges import pack_numbers

from ..store.parsed_request import OutgoingRequest, ParsedRequest
from .body_cutting import cut_body, cut_results, read_piece
from .preamble import Preamble, make_preamble
from .token_limits import count_beside, find_limit

NOTHING = Preamble({}, {}, "", 0)


class KeptMessage(NamedTuple):
    """A message of the history, as it is sent and as it is counted."""

    index: int
    pieces: list[SentPiece]
    messages: list[BaseMessage]

    @property
    def is_question(self) -> bool:
        return any(isinstance(each, HumanMessage) for each in self.messages)


def find_covered(of_client: ClientConversation, cutoff: int) -> int:
    """Return the position of the last message up to row `cutoff`, or -1."""
    after = range(_find_last_kept(of_client, cutoff) + 1, of_client.length)
    if not after or of_client.find_seq(after[0]) > cutoff:
        return after.start - 1
    # Rows of a parent are missing once it is erased, or a message there deleted.
    return after.start + bisect_right(after, cutoff, key=of_client.find_seq) - 1


def _find_last_kept(of_client: ClientConversation, cutoff: int) -> int:
    """Return the last such position that has a row, or -1."""
    most = of_client.length
    while True:
        rows = ClientMessage.objects.filter(
            conversation=of_client.pk,
            message__seq__lte=cutoff,
            position__lt=most,
            is_again=False,
        )
        found = rows.aggregate(last=Max("position"))["last"]
        if found is not None or not of_client.parent_id:
            return -1 if found is None else found
        # A branch shares the numbers of its parent's messages.
        most = min(most, of_client.shared)
        of_client = ClientConversation.objects.get(pk=of_client.parent_id)


def list_spans(request: ParsedRequest) -> list[list[int]]:
    """Return the places in the body of each message of the history.

    Reasoning that belongs to no message is sent with the next one, or with the last
    one.
    """
    spans = [[*each.span] for each in request.history.messages]
    order = sorted(range(len(spans)), key=lambda n: spans[n][0])
    starts = [spans[n][0] for n in order]
    known = {*range(starts[0]), *chain.from_iterable(spans)}
    count = len(request.api.list_sent(request.body.value))
    for at in sorted({*range(count)} - known):
        spans[order[min(bisect_right(starts, at), len(order) - 1)]].append(at)
    return [sorted(each) for each in spans]


class MessageSelector:
    """The selection for one request, of which everything is known or stored."""

    def __init__(
        self,
        request: ParsedRequest,
        of_client: ClientConversation,
        decision: Decision,
        limit: int | None = None,
    ) -> None:
        conversation, value = of_client.conversation, request.body.value
        self.request, self.conversation = request, conversation
        self.of_client, self.decision = of_client, decision
        # The tokens of messages, with what providers add to every request.
        beside = count_beside(value)
        limit = limit or find_limit(request.api, request.model, value)
        self.beside = ceil(beside * conversation.token_ratio)
        self.limit = max(1, limit - self.beside)
        extra = context.estimate_overhead(conversation, self.limit)
        self.most = self.limit - extra
        self.history = request.history.messages
        pieces = {each.at: each for each in request.body.pieces}
        first = min(each.start for each in self.history)
        self.leading = [pieces[at] for at in range(first)]
        self.pieces = [[*map(pieces.get, span)] for span in list_spans(request)]
        self.count = context.conversation_counter(conversation)
        self._aligned = dict(decision.aligned)

    def select_messages(self, *, may_leave_out: bool) -> OutgoingRequest:
        """Return what to send.

        Without `may_leave_out` it can be too long: then more has to be summarised
        first.
        """
        summaries = self._list_summaries()
        cutoff = versions.last_covered(summaries)
        covered = find_covered(self.of_client, cutoff) if cutoff else -1
        every = range(len(self.history))
        # A text instead of a list can take no summaries.
        is_text = isinstance(self.request.body.value[self.request.api.list_name], str)
        indexes = [n for n in every if is_text or self._position_of(n) > covered]
        kept = self._keep(indexes)
        # Messages that the client itself dropped need no summary.
        is_cut = len(indexes) < len(self.history)
        preamble = NOTHING
        if is_cut:
            preamble = make_preamble(self.conversation, summaries, self.limit)
            kept = self._with_question(kept)
        sent = self._make(preamble, kept, is_cut=is_cut)
        if sent.is_too_long and may_leave_out:
            fewer = self._leave_out(sent, kept)
            if len(fewer) < len(kept):
                return self._make(preamble, fewer, is_cut=True)
        return sent

    def _list_summaries(self) -> list[Summary]:
        """Return the summaries that end before a branch begins."""
        found, made = versions.active_summaries(self.conversation), self.decision
        if made.kind != "branch" or not found:
            return found
        last = self.of_client.find_seq(made.parent_position - 1)
        return [each for each in found if each.last_seq <= last]

    def _position_of(self, index: int) -> int:
        """Return the position of a message of the history in the conversation."""
        made = self.decision
        if index < made.summary:
            return made.parent_position + index
        if index < made.first_new:
            shift = made.parent_position - made.first_new
            return self._aligned.get(index, index + shift)
        return made.parent_position + made.summary + index - made.first_new

    def _keep(self, indexes: Sequence[int]) -> list[KeptMessage]:
        """Return these messages, without results of calls that are not sent."""
        api, body = self.request.api, self.request.body
        kept: list[KeptMessage] = []
        before = -1
        for index in indexes:
            pieces = self.pieces[index]
            if before != index - 1:
                pieces = [*filter(None, map(cut_results, pieces))]
                if not pieces:
                    continue
            values = [read_piece(body, each, api.list_name) for each in pieces]
            listed = values[0] if isinstance(values[0], str) else values
            messages = api.to_demo_messages({api.list_name: listed})
            kept.append(KeptMessage(index, pieces, messages))
            before = index
        return kept

    def _with_question(self, kept: list[KeptMessage]) -> list[KeptMessage]:
        """Add the question if only its steps are left."""
        if any(each.is_question for each in kept):
            return kept
        first = kept[0].index if kept else len(self.history)
        for index in reversed(range(first)):
            found = self._keep([index])
            if any(each.is_question for each in found):
                return [*found, *kept]
        return kept

    def _leave_out(
        self, sent: OutgoingRequest, kept: list[KeptMessage]
    ) -> list[KeptMessage]:
        """Return the messages from the first turn, or round of tools, that fits."""
        flat = [(n, each) for n, one in enumerate(kept) for each in one.messages]
        said = [each for _, each in flat]
        points = [n for n in find_cut_points(said, rounds=True) if flat[n][0]]
        if not points:
            return kept
        sizes = [*map(count_message, said)]
        rest = [*accumulate(reversed(sizes))][::-1]
        around = count_tokens(sent.request.demo_messages) - rest[0]
        newest = find_newest_question(said)

        def fits(point: int) -> bool:
            question = sizes[newest] if point > newest >= 0 else 0
            tokens = around + question + rest[point]
            return ceil(tokens * self.conversation.token_ratio) <= self.most

        point = next(filter(fits, points), points[-1])
        rest = self._keep([each.index for each in kept[flat[point][0] :]])
        return self._with_question(rest)

    def _make(
        self, preamble: Preamble, kept: list[KeptMessage], is_cut: bool
    ) -> OutgoingRequest:
        request, extra = self.request, {}
        if is_cut:
            pieces = [piece for each in kept for piece in each.pieces]
            name = request.api.list_name
            body, raw = cut_body(
                request.body, self.leading, preamble.written, pieces, name
            )
            request = replace(request, body=body, raw=raw)
            positions = pack_numbers(self._position_of(each.index) for each in kept)
            extra = {"positions": positions, "cutoff": preamble.cutoff}
        tokens = self.count(request.demo_messages)
        items = len(request.api.list_sent(request.body.value)) - len(self.leading)
        return OutgoingRequest(
            request,
            tokens=tokens + self.beside + self.conversation.token_overhead,
            before=len(self.history),
            after=items - sum(len(each.pieces) - 1 for each in kept),
            is_bound=True,
            refs=preamble.refs,
            texts=preamble.texts,
            limit=self.limit,
            is_too_long=tokens > self.most,
            **extra,
        )
