"""Storing a client's request before it is sent.

That is the conversation that it continues, its new messages, its turn and its record.

All of it is one transaction, unless there are too many messages: then these come first,
in batches. What a batch has stored stays valid whenever the work ends, and the next
request continues from there.
"""

import re
import uuid
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from time import monotonic
from typing import Any

from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import OuterRef, QuerySet, Subquery
from django.db.models.functions import Now
from django.utils import timezone
from langchain_core.messages import BaseMessage

from chatsite.contrib.endpoint import keys
from chatsite.contrib.endpoint.apis.errors import ApiError
from chatsite.contrib.endpoint.conversation_hooks import SOURCE
from chatsite.contrib.endpoint.identity.deciding import decide_lineage
from chatsite.contrib.endpoint.identity.evidence import is_question
from chatsite.contrib.endpoint.identity.history import Message as CanonicalMessage
from chatsite.contrib.endpoint.models import ApiKey, ClientConversation, ClientMessage
from chatsite.llm.streaming import clean_text
from chatsite.turns import lifecycle, limits
from chatsite.turns.copying import copies
from chatsite.turns.models import ONLY_ATTEMPT, TURN_LEASE, Turn
from memory import transcript
from memory.models import Conversation, Message, ModelCall, read_langchain
from memory.sql import Update, prepared_rows, prepared_update

from ..identity.decision import Decision, list_chains, stays_single
from .bodies import SentPiece
from .body_pieces import ConversationPieces
from .client_turns import ClientTurns
from .held_state import HeldState, continue_history
from .owner_history import OwnerHistory, ServedReply, find_previous
from .parsed_request import OutgoingRequest, ParsedRequest
from .recording import store_call

# No summaries and no searches of the site: a client's request stays as it is.
POLICY = {"enabled": False, "recall_tokens": 0, "rules": "off", "facts": "off"}
# Messages stored, and messages copied for a branch, in one transaction.
BATCH, MAX_COPIED = 20, 200
TITLE_CHARS = 400
CLIENT_NOTE = re.compile(r"\s*<([A-Za-z][\w-]*)(?:\s[^<>]*)?>.*?</\1>\s*", re.DOTALL)
# The columns of ClientConversation that a request changes.
STANDING_COLUMNS = ("key_id", "client", "length", "open_position", "is_single")
# The first part of the owner tokens of this process's requests. It is not that of its
# other turns: when it ends, these are not handed on.
HERE = uuid.uuid4().hex[:12]


class HeldElsewhereError(Exception):
    """Raised with the id of a conversation in which another process answers.

    That process may be dead.
    """


@dataclass(frozen=True, slots=True)
class StoredRequest:
    """A request that is stored and may be sent."""

    claim: lifecycle.TurnClaim
    conversation: Conversation
    lineage: str
    reply_seq: int
    # Where the reply will be in the client's chain, and the chain before it.
    position: int
    chain: bytes
    sent: OutgoingRequest
    # How often it was sent; the second time it is shorter.
    tries: int = 1
    title: str = ""
    is_changed: bool = False
    # The conversation beside which this one began.
    beside: int | None = None
    # For the demo model, which stores nothing: the history that the body refers to.
    earlier: list[BaseMessage] = field(default_factory=list)
    # What the provider holds of the conversation.
    held: HeldState | None = None


Branch = Callable[[Conversation, int], Conversation]


@dataclass(frozen=True, slots=True)
class OversizedRequest:
    """A request that is stored, but too long to be sent.

    Its messages have to be summarised to `limit` tokens first. Then it is stored again
    with the same decision.
    """

    conversation: Conversation
    limit: int
    decision: Decision


@dataclass(frozen=True, slots=True)
class Bounds:
    """The settings of a bounded request.

    The policy of its conversation, the rules that a new one begins with, and the choice
    of what is sent once everything is stored.
    """

    policy: dict[str, Any]
    own_rules: Sequence[str]
    choose: Callable[["RequestWriter"], OutgoingRequest]


# Runs a step in the database thread; a copy in a thread of its own.
Run = Callable[..., Awaitable[Any]]


class RequestWriter:
    """The steps that store one request.

    `first` is the earlier decision, if the request is stored again.
    """

    def __init__(
        self,
        key: ApiKey,
        request: ParsedRequest,
        bounds: Bounds | None = None,
        first: Decision | None = None,
    ) -> None:
        self.key, self.request, self.bounds, self.first = key, request, bounds, first
        self.policy = bounds.policy if bounds else POLICY
        self.sent = OutgoingRequest.make_unchanged(request)
        self.history = request.history
        self.previous: ServedReply | None = None
        self.held: HeldState | None = None
        self.title = ""
        # The client's changes, as codes for which the page has texts.
        self.changes: list[str] = []
        # The conversation that is still to be copied for this branch.
        self.parent: Conversation | None = None
        self.rows: dict[int, Message] = {}
        self.decision: Decision
        self.conversation: Conversation
        self.of_client: ClientConversation
        self.pieces: ConversationPieces
        # Pieces of the body that were not sent in this conversation before.
        self.new_pieces: list[SentPiece]
        self.turns: ClientTurns
        self.todo: list[tuple[int, int]] = []

    @property
    def messages(self) -> list[CanonicalMessage]:
        return self.history.messages

    @property
    def holds_setup(self) -> bool:
        """True if the provider holds the system prompt and the tools."""
        return self.previous is not None and self.request.api.holds_setup

    @transaction.atomic
    def store_first(self) -> StoredRequest | OversizedRequest | None:
        """Store the first batch, or all of it.

        Return None if more has to be stored by store_more(). Raise CommandError for a
        limit of the site, and ApiError.
        """
        keys.check_tokens(self.key)
        limits.check_turn(self.key.owner_id)
        self.decision = self._decide()
        if self.parent is not None:
            return None
        self._list_todo()
        return self._store_batch()

    def _list_todo(self) -> None:
        self.pieces = ConversationPieces(self.conversation)
        self.new_pieces = self.pieces.list_new(self.request.body.pieces)
        self.turns = ClientTurns(self.conversation)
        known = set(self.decision.aligned)
        chains = [*list_chains(self.history, self.decision)]
        self.todo = [each for each in chains if each not in known]
        again = [each for each in chains if each in known]
        if "side" in self.decision.why:
            self._store_shared_hashes(again)
            again = []
        # Without new messages, only this row says where the conversation stands.
        if again or not self.todo:
            self._store_hashes(again, is_again=True)

    @transaction.atomic
    def store_more(self) -> StoredRequest | OversizedRequest | None:
        """Store the next batch; return None if there is more."""
        transcript.lock_for_update(self.conversation)
        if self.parent is not None:
            self.parent = None
            self._list_todo()
        return self._store_batch()

    def _store_batch(self) -> StoredRequest | OversizedRequest | None:
        some, self.todo = self.todo[:BATCH], self.todo[BATCH:]
        if some:
            self._store_rows(some)
        return None if self.todo else self._store_record()

    def _decide(self) -> Decision:
        # Requests of one user are decided one after the other. Not by the row of the
        # limits, which is locked after that of a conversation.
        lock_owner(pk=self.key.owner_id)
        known = OwnerHistory(self.key.owner_id, self.request.within)
        self.previous = find_previous(known, self.request)
        self.history = continue_history(self.request, self.previous)
        if self.previous:
            self.held = HeldState.from_reply(self.request.api, self.previous)
            tokens = self.sent.tokens + self.held.all_tokens
            self.sent = replace(self.sent, tokens=tokens)
        place = self.previous and self.previous.place
        decision = decide_lineage(self.history, self.request.hints, known, place)
        if self.request.within and decision.kind not in ("continued", "retry"):
            detail = "That conversation has changed. Send all of its messages."
            raise ApiError(409, "conversation_changed", detail)
        if decision.conversation is None:
            self._make_conversation(decision.linked)
            return decision
        of_client = self._find_standing(decision)
        found = of_client.conversation
        # Messages after that reply stay.
        is_inside = of_client.length > decision.parent_position + 1
        is_again = decision.kind == "retry" and is_inside
        if decision.kind == "branch" or of_client.holder is not None or is_again:
            if decision.parent_position > MAX_COPIED:
                self.parent = found
            else:
                self._branch(found, decision, copies.branch_conversation)
            return decision._replace(kind="branch")
        transcript.lock_for_update(found)
        if found.policy == POLICY != self.policy:
            found.policy = self.policy
            found.save(update_fields=["policy"])
        self.conversation, self.of_client = found, of_client
        is_branch = of_client.shared > 0
        of_client.is_single &= stays_single(self.history, decision, is_branch=is_branch)
        if decision.kind == "retry":
            self._supersede_reply(decision.parent_position)
        return decision

    def _find_standing(self, decision: Decision) -> ClientConversation:
        (of_client,) = _find_standing(pk=int(decision.conversation))
        is_elsewhere = of_client.holder and not of_client.holder.startswith(HERE)
        if is_elsewhere and self.request.waits and decision.kind != "branch":
            raise HeldElsewhereError(of_client.pk)
        return of_client

    def _make_conversation(self, linked: str | None) -> None:
        limits.admit_conversation(self.key.owner_id)
        rules = self.bounds.own_rules if self.bounds else ()
        made = transcript.create_conversation(
            self.key.owner, policy=self.policy, own_rules=rules
        )
        self._name_after_client(made)
        self.of_client = ClientConversation(conversation=made, family=made.uuid)
        self.of_client.is_single = len(self.messages) == 1
        if linked:
            # Locked, as it could be erased before this is stored.
            rows = Conversation.objects.select_for_update(no_key=True)
            self.of_client.linked = found = rows.filter(pk=int(linked)).first()
            self.of_client.linked_at = found and _find_last_question(found)

    def _name_after_client(self, made: Conversation) -> None:
        made.imported_from = f"{SOURCE}{self.key.name}"
        made.save(update_fields=["imported_from"])
        self.conversation = made

    def copy_parent(self) -> None:
        """Copy a long parent: after store_first(), in a thread of its own."""
        self._branch(self.parent, self.decision, copies.branch_in_batches)

    def _branch(self, parent: Conversation, decision: Decision, branch: Branch) -> None:
        shared = decision.parent_position
        of_parent = ClientConversation.objects.get(pk=parent.pk)
        seq = of_parent.find_seq(shared - 1)
        made = branch(parent, seq)
        made.policy = self.policy
        made.save(update_fields=["policy"])
        self._name_after_client(made)
        stays = stays_single(self.history, decision, is_branch=True)
        self.of_client = ClientConversation(
            conversation=made,
            is_single="side" in decision.why or (of_parent.is_single and stays),
            family=of_parent.family,
            own_family=of_parent.own_family,
            parent=parent,
            shared=shared,
        )

    def _supersede_reply(self, position: int) -> None:
        """Supersede the last reply, as another one is wanted."""
        rows = self.conversation.messages.filter(superseded_at=None)
        last = rows.filter(role=Message.Role.ASSISTANT).order_by("-seq").first()
        newest = self.of_client.find_seq(position - 1)
        if last and last.seq > newest:
            transcript.supersede_messages(self.conversation, last.seq, last.seq)
        ClientMessage.objects.filter(
            conversation=self.conversation, position__gte=position
        ).delete()

    def _store_rows(self, some: list[tuple[int, int]]) -> None:
        """Store the rows of these messages, with their turns and pieces."""
        request = self.request
        sent = request.api.list_sent(request.body.value)
        last = len(self.messages) - 1
        made: list[tuple[int, list[Message]]] = []
        for index, _ in some:
            message = self.messages[index]
            raw = sent[message.start : message.end]
            rows = [self._make_message(row) for row in request.api.make_rows(raw)]
            made.append((index, rows))
        flat = [row for _, rows in made for row in rows]
        first = transcript.reserve_numbers(self.conversation, len(flat))
        for seq, row in enumerate(flat, first):
            row.seq = seq
        if made[-1][0] == last and flat[-1].role == Message.Role.ASSISTANT:
            # The beginning of the reply that the client asks for.
            flat[-1].superseded_at = timezone.now()
        transcript.store_results(flat)
        self.turns.add_rows(flat)
        ends = {index: rows[-1] for index, rows in made}
        wanted = {at: row for i, row in ends.items() for at in self.messages[i].span}
        self.rows |= wanted
        pieces = (each for each in self.new_pieces if each.at in wanted)
        self.pieces.store_new(pieces, self.rows)
        self._store_hashes(some, ends)

    def _make_message(self, row: Any) -> Message:
        is_imported = row.role != Message.Role.USER
        return Message(
            conversation=self.conversation,
            role=row.role,
            text=row.text,
            tool_calls=row.tool_calls or [],
            tool_call_id=row.tool_call_id,
            # No request of this site is known for these.
            imported_at=timezone.now() if is_imported else None,
        )

    def _store_hashes(
        self,
        some: list[tuple[int, int]],
        ends: dict[int, Message] | None = None,
        *,
        is_again: bool = False,
    ) -> None:
        """Store the hashes of these messages, and where the conversation stands."""
        ClientMessage.objects.bulk_create(
            make_hashes(
                self.messages[index],
                at,
                ends[index] if ends else self._find_row(at),
                self.key.owner_id,
                is_again=is_again,
            )
            for index, at in some
        )
        of_client = self.of_client
        of_client.key = self.key
        # A later request may have another id, which is then ignored.
        of_client.client = of_client.client or self.request.hints.conversation
        ends_at = (position + 1 for _, position in some)
        of_client.length = max(of_client.length, of_client.shared, *ends_at)
        of_client.open_position = max(of_client.length - 1, 0)
        # Other columns may have been changed by hand meanwhile.
        if of_client._state.adding:
            of_client.save()
        else:
            stands = {name: getattr(of_client, name) for name in STANDING_COLUMNS}
            update_standing(pk=of_client.pk, **stands)

    def _store_shared_hashes(self, shared: Iterable[tuple[int, int]]) -> None:
        """Store the hashes of a side call's shared messages with its parent.

        They are the forms that its client sends now; its next request continues the
        parent.
        """
        # Locked, since it could be erased before this is stored.
        rows = Conversation.objects.select_for_update(no_key=True)
        if (parent := rows.filter(pk=self.of_client.parent_id).first()) is None:
            return
        for index, position in shared:
            seq, message = self.of_client.find_seq(position), self.messages[index]
            for row in parent.messages.filter(seq=seq):
                owner_id = self.key.owner_id
                make_hashes(message, position, row, owner_id, is_again=True).save()

    def _find_row(self, position: int) -> Message:
        if position < self.of_client.shared:
            seq = self.of_client.find_seq(position)
            return self.conversation.messages.get(seq=seq)
        (row,) = _find_message(conversation_id=self.conversation.pk, position=position)
        return row.message

    def _store_record(self) -> StoredRequest | OversizedRequest:
        if self.decision.kind == "retry":
            self.of_client.length = self.decision.parent_position
            self._store_hashes([])
        self._store_rest()
        if not self.messages:
            self.turns.resume_reply()
        if self.bounds:
            self.sent = self.bounds.choose(self)
            if self.sent.is_too_long and self.first is None:
                limit = self.sent.limit
                return OversizedRequest(self.conversation, limit, self.decision)
            self.store_pieces(self.sent.request.body.pieces)
        if not limits.has_place(limits.admit_turn(self.key.owner_id, stored=False)):
            detail = "Too many of your requests run at once. Wait for one to end."
            raise ApiError(429, "too_many_requests", detail, retry_after=1)
        conversation = self.conversation
        reply_seq = transcript.reserve_numbers(conversation, 1)
        call = store_call(self, reply_seq)
        turn, claim = self._claim_turn(call, reply_seq)
        kind = self.reported.kind
        return StoredRequest(
            claim=claim,
            conversation=conversation,
            lineage="continued" if kind == "retry" else kind,
            reply_seq=reply_seq,
            position=self.of_client.length,
            chain=self.history.last_chain,
            sent=self.sent,
            title=self._suggest_title(),
            is_changed="forgotten" in self.changes
            or turn.user_message.seq < reply_seq - 1,
            beside=None if self.decision.conversation else self.of_client.linked_id,
            earlier=self._read_earlier(),
            held=self.held,
        )

    def _read_earlier(self) -> list[BaseMessage]:
        if self.previous is None or self.request.api.find_upstream(self.request.model):
            return []
        first = min((row.seq for row in self.rows.values()), default=None)
        rows = self.conversation.messages.filter(superseded_at=None, deleted_at=None)
        rows = rows if first is None else rows.filter(seq__lt=first)
        return read_langchain(rows.order_by("seq"))

    @property
    def reported(self) -> Decision:
        """The decision that is reported to the client and the page."""
        is_again = self.first is not None and self.decision.kind == "retry"
        return self.first if is_again else self.decision

    def _store_rest(self) -> None:
        """Store the other pieces, the instructions and the codes of changes."""
        if self.reported.rewritten:
            self.changes.append("rewritten")
        if self.reported.kind == "client-compacted":
            self.changes.append("forgotten")
        self.store_pieces(self.new_pieces)
        text = clean_text(self.request.api.read_instructions(self.request.body.value))
        if self.holds_setup:
            return
        if text != self.conversation.system_prompt:
            if self.decision.conversation:
                self.changes.append("instructions")
            rows = Conversation.objects.filter(pk=self.conversation.pk)
            rows.update(system_prompt=text)

    def store_pieces(self, pieces: Sequence[SentPiece]) -> None:
        """Store new pieces, also of known messages that came in another form.

        Those are the last reply, as this client writes it, and messages that it
        changed.
        """
        new = {each.at for each in self.pieces.list_new(pieces)} - {None, *self.rows}
        aligned = dict(self.decision.aligned)
        shift = self.decision.parent_position - self.decision.first_new
        first = min(new, default=0)
        for index, message in enumerate(self.messages if new else ()):
            if message.end > first and not new.isdisjoint(message.span):
                row = self._find_row(aligned.get(index, index + shift))
                self.rows |= dict.fromkeys(message.span, row)
        self.pieces.store_new(pieces, self.rows)

    def _claim_turn(
        self, call: ModelCall, reply_seq: int
    ) -> tuple[Turn, lifecycle.TurnClaim]:
        turn, started = self.turns.find_turn(), monotonic()
        owner = f"{HERE}{uuid.uuid4().hex[len(HERE) :]}"
        attempt = max(turn.attempt + 1, ONLY_ATTEMPT)
        begun = {"owner": owner, "attempt": attempt}
        begun |= {"call_id": call.pk, "model": call.model}
        _begin_turn(pk=turn.pk, reply_seq=reply_seq, text_attempt=attempt, **begun)
        claim = lifecycle.TurnClaim(
            turn.pk,
            conversation_id=self.conversation.pk,
            tokens=call.tokens_estimated,
            renewed_at=started,
            **begun,
        )
        return turn, claim

    def _suggest_title(self) -> str:
        if self.conversation.title_set_by != Conversation.TitleSource.NONE:
            return ""
        said = [each for each in self.messages if is_question(each)]
        noted = [(each, cut_notes(each.text)) for each in said]
        texts = [*noted, *((each, each.text) for each in said)]
        first, text = next((each for each in texts if each[1].strip()), (None, ""))
        words = clean_text(text[:TITLE_CHARS]) if first else ""
        if not words:
            return ""
        row = next((self.rows[at] for at in first.span if at in self.rows), None)
        return transcript.suggest_title(self.conversation, words, row and row.seq)


def make_hashes(
    message: CanonicalMessage, position: int, row: Message, owner_id: int, **more: bool
) -> ClientMessage:
    """Return the hashes of a message that the transcript has in this row."""
    return ClientMessage(
        conversation_id=row.conversation_id,
        owner_id=owner_id,
        position=position,
        digest=message.digest,
        chain=message.chain,
        role=message.role,
        size=len(message.text.encode("utf-8", "replace")),
        message=row,
        **more,
    )


def cut_notes(text: str) -> str:
    """Return a message without the notes that its client put before it.

    An example is `<environment_context>…</environment_context>`.
    """
    while note := CLIENT_NOTE.match(text):
        text = text[note.end() :]
    return text


@prepared_rows()
def lock_owner(pk: Any) -> QuerySet[Any, Any]:
    users = get_user_model().objects.select_for_update(no_key=True)
    return users.filter(pk=pk).order_by().values("pk")


@prepared_rows()
def _find_standing(pk: Any) -> QuerySet[ClientConversation]:
    """Return the ClientConversation, and who answers in it; None if it is idle."""
    holder = Subquery(lifecycle.unfinished(OuterRef("pk")).values("owner")[:1])
    rows = ClientConversation.objects.filter(pk=pk).annotate(holder=holder)
    return rows.select_related("conversation")


def read_lease(conversation_id: int) -> tuple[str, datetime | None] | None:
    """Return the owner and the end of the lease of its turn; None if it is idle."""
    turns = lifecycle.unfinished(conversation_id)
    return turns.values_list("owner", "lease_until").first()


@prepared_update()
def update_standing(pk: Any, **values: Any) -> Update:
    return ClientConversation.objects.filter(pk=pk), values


@prepared_rows()
def _find_message(conversation_id: Any, position: Any) -> QuerySet[ClientMessage]:
    rows = ClientMessage.objects.filter(
        conversation_id=conversation_id, position=position, is_again=False
    )
    return rows.select_related("message")


@prepared_update()
def _begin_turn(pk: Any, **values: Any) -> Update:
    return Turn.objects.filter(pk=pk), {
        "state": Turn.State.RUNNING,
        "lease_until": TURN_LEASE.new_expiry(),
        "cancel_requested_at": None,
        "started_at": Now(),
        "finished_at": None,
        "reply": None,
        "text": "",
        "error": "",
        **values,
    }


def _find_last_question(conversation: Conversation) -> int | None:
    rows = conversation.messages.filter(role=Message.Role.USER, superseded_at=None)
    return rows.order_by("-seq").values_list("seq", flat=True).first()


async def store_request(
    writer: RequestWriter, run: Run
) -> StoredRequest | OversizedRequest:
    """Store all of a request, batch by batch."""
    stored = await run(writer.store_first)
    if writer.parent is not None:
        await run(writer.copy_parent, is_copy=True)
    while stored is None:
        stored = await run(writer.store_more)
    return stored
