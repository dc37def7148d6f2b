"""The preparation of a compaction: the state, and one step planned on it.

Every function is one short transaction. Nothing here waits for a model.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from time import monotonic
from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from django.db.models import DateTimeField, F, Q
from django.utils import timezone
from langchain_core.messages import BaseMessage

from memory import context, versions
from memory.engine import budget, plan
from memory.engine.compaction import MemoryState
from memory.engine.cut_points import find_turn_starts
from memory.engine.policy import Policy
from memory.engine.tokens import TokenCounter
from memory.engine.tools import rounds
from memory.engine.triggers import find_next_due
from memory.files import passage_source
from memory.leases import Claim
from memory.models import Conversation, ModelCall, Summary, read_langchain
from memory.ranges import to_ranges
from memory.sql import Update, prepared_update

from . import lease

# Returns the number of the first message whose turn is not finished, or None. From
# there on nothing is compacted: a reply may still be written between the messages.
OpenFrom = Callable[[Conversation], int | None]
AHEAD_OF_WINDOW = ("system", "summaries", "pinned", "facts", "rules")
# The references to these sections, and to the words around the summaries.
AHEAD_REFS = (*AHEAD_OF_WINDOW, "fence")
# The least time that providers keep a prefix.
CACHE_LASTS = timedelta(minutes=5)
# For fewer tokens, the other form of the request is safer and costs hardly more.
LEAST_CACHED = 1024
# Tokens of the instruction and the summary, beside the prefix.
ASKING_TOKENS = 1500


@dataclass(frozen=True, slots=True)
class Prefix:
    """The beginning of the last request for a reply, up to the end of a step.

    The messages are also given by reference. `model` is the one whose provider has the
    prefix in its cache.
    """

    model: str
    messages: list[BaseMessage]
    refs: dict[str, Any]
    # The texts that the references name by their hash.
    texts: dict[str, str]


@dataclass(slots=True)
class CompactionJob:
    """One planned step with everything that its commit is checked against."""

    conversation: Conversation
    step: plan.Step
    sources: list[Summary]
    messages: list[BaseMessage]
    policy: Policy
    count_tokens: TokenCounter
    tokens_before: int
    prefix: Prefix | None = None
    author: AbstractBaseUser | None = None
    calls: list[int] = field(default_factory=list)
    tokens_in: int = 0
    tokens_out: int = 0
    started: float = field(default_factory=monotonic)


def is_due(
    conversation: Conversation, open_from: OpenFrom, context_window: int
) -> bool:
    """Return whether a compaction may have anything to do.

    If not, which is the usual case, no lease is claimed, and the time to look again is
    stored.
    """
    is_now, due_at = find_due(conversation, open_from, context_window)
    # A mark that was made after the row was read is a later time; it stays.
    seen = conversation.compaction_due_at
    if not is_now and seen != due_at:
        values = {"seen": seen} if seen else {}
        _look_again(pk=conversation.pk, due_at=due_at, **values)
    return is_now


def find_due(
    conversation: Conversation,
    open_from: OpenFrom,
    context_window: int,
    view: context.ConversationView | None = None,
) -> tuple[bool, datetime | None]:
    """Return whether a compaction may have anything to do, else the time to look again.

    `view`: the present one, if it is known.
    """
    row = conversation
    if row.deleted_at or row.set_aside or row.compaction_owner:
        return True, None
    limit = context.request_limit(context_window)
    planner = Planner(row, open_from, limit=limit, view=view)
    if planner.next_step(context_window):
        return True, None
    return False, planner.find_next_due()


@prepared_update(seen=DateTimeField())
def _look_again(pk: Any, due_at: Any, seen: Any = None) -> Update:
    marked = Q(compaction_due_at__lte=seen) if seen else Q(compaction_due_at=None)
    rows = Conversation.objects.filter(marked, pk=pk, compaction_owner="")
    return rows, {"compaction_due_at": due_at}


def prepare_job(
    claim: Claim,
    open_from: OpenFrom,
    context_window: int | None,
    limit: int | None,
    force: bool,
    *,
    rounds: bool = False,
) -> CompactionJob | None:
    """Read the state and plan one step on it; return None if nothing is to do."""
    conversation = Conversation.objects.get(pk=claim.row_id)
    if lease.is_stopped(conversation, claim):
        return None
    if conversation.set_aside:
        _resume_summaries(claim)
        conversation.refresh_from_db()
    limit = limit or (context.request_limit(context_window) if context_window else None)
    planner = Planner(conversation, open_from, limit=limit)
    if step := planner.next_step(context_window, force=force, rounds=rounds):
        return planner.make_job(step)
    # Nothing is due until an idle or age trigger can fire, or the next turn ends.
    rows = Conversation.objects.filter(pk=claim.row_id)
    lease.filter_unmarked(rows).update(compaction_due_at=planner.find_next_due())
    return None


@transaction.atomic
def _resume_summaries(claim: Claim) -> None:
    """Put summaries that were set aside in force again, where they follow on."""
    rows = lease.COMPACTION_LEASE.filter_held(claim)
    # The UPDATE is also the lock.
    if rows.update(memory_version=F("memory_version") + 1):
        versions.resume_set_aside(rows.get())


def prepare_through(
    conversation: Conversation, open_from: OpenFrom, seq: int
) -> CompactionJob | None:
    """Plan the step that a user requests: compaction up to the turn of `seq`.

    Return None if the message is not in the window, or in its last turn.
    """
    planner = Planner(conversation, open_from)
    state = planner.state
    if not any(message.id == str(seq) for message in state.window):
        return None
    count_tokens = planner.count_tokens
    step = plan.plan_compaction_through(
        state.policy, state.window, state.blocks, seq, count_tokens=count_tokens
    )
    return planner.make_job(step) if step else None


class Planner:
    """A conversation as the model sees it, to plan a step on it."""

    def __init__(
        self,
        conversation: Conversation,
        open_from: OpenFrom,
        policy: Policy | None = None,
        limit: int | None = None,
        view: context.ConversationView | None = None,
    ) -> None:
        self.conversation = conversation
        policy = policy or conversation.get_policy()
        self.limit = limit
        if limit:
            policy = context.policy_within(conversation, policy, limit)
        # Read first: a turn that ends meanwhile counts as open.
        self.open_from = open_from(conversation)
        view = view or context.read_view(conversation, limit=limit)
        self.view, self.summaries, self.context = view, view.summaries, view.context
        self.count_tokens = context.conversation_counter(conversation)
        extra = context.estimate_overhead(conversation)
        self.tokens = self.count_tokens(self.context.messages) + extra
        # The messages as they are stored, up to the first unfinished turn: in the
        # context, old arguments of tools may be cut.
        window = view.window
        self.waiting: list[BaseMessage] = []
        if self.open_from is not None:
            window = [each for each in window if int(each.id or 0) < self.open_from]
            self.waiting = _first_turn(view.window[len(window) :])
        blocks = tuple(map(versions.to_block, self.summaries))
        self.state = MemoryState(policy, blocks=blocks, window=tuple(window))

    def find_next_due(self) -> datetime | None:
        """Return the time when a step can be due without a new turn."""
        return find_next_due(self.state.policy, self.state.window)

    def next_step(
        self, context_window: int | None, *, force: bool = False, rounds: bool = False
    ) -> plan.Step | None:
        """Return the step that the policy requires now."""
        policy, limit = self.state.policy, self.limit
        set_aside = None
        if self.conversation.set_aside and policy.enabled:
            first = next(iter(versions.find_set_aside(self.conversation)), None)
            set_aside = (first.first_seq, first.last_seq) if first else None
        room = None
        if limit is not None:
            # The window's tokens with which the next request contains all of it.
            others = (each for each in self.context.sections if each.kind != "window")
            around = [message for each in others for message in each.messages]
            extra = context.estimate_overhead(self.conversation, limit)
            files = passage_source.find_room(self.conversation, limit)
            room = budget.for_window(
                policy,
                limit,
                self.count_tokens([*around, *self.waiting]) + extra + files,
                is_waiting=bool(self.waiting),
            )
        return self.state.next_step(
            set_aside=set_aside,
            open_from=self.open_from,
            most_summaries=budget.most_summaries(limit) if limit else None,
            count_tokens=self.count_tokens,
            overhead=self.tokens - self.count_tokens(self.state.window),
            context_window=context_window,
            force=force,
            room=room,
            is_waiting=bool(self.waiting),
            rounds=rounds,
        )

    def make_job(self, step: plan.Step) -> CompactionJob:
        if isinstance(step, plan.Compaction):
            messages = list(step.messages)
        else:
            rows = context.visible_messages(self.conversation)
            rows = rows.filter(seq__range=(step.first_seq, step.last_seq))
            messages = read_langchain(rows)
        replaced = {block.version for block in step.replaces}
        return CompactionJob(
            conversation=self.conversation,
            step=step,
            sources=[each for each in self.summaries if each.version in replaced],
            messages=messages,
            policy=self.state.policy,
            count_tokens=self.count_tokens,
            tokens_before=self.tokens,
            prefix=self._find_prefix(step),
        )

    def _find_prefix(self, step: plan.Step) -> Prefix | None:
        """Return the cached prefix for a step, or None.

        None if no provider is known to have it, if there is no room for more, or if the
        other form is safer.

        With tools, calls would be in the prefix or before it; and a summary that has
        failed is requested in the form that works with any model.
        """
        row = self.conversation
        is_summary = isinstance(step, plan.Compaction) and not step.is_trim
        if not is_summary or not self.state.policy.cached_prefix:
            return None
        of_tools = (m.type == "tool" or rounds.calls_of(m) for m in step.messages)
        if row.tools or row.compaction_failures or any(of_tools):
            return None
        ahead = [each for each in self.context.sections if each.kind in AHEAD_OF_WINDOW]
        messages = [message for each in ahead for message in each.messages]
        messages += step.messages
        room = context.estimate_overhead(row) + ASKING_TOKENS
        if self.limit and self.count_tokens(messages) + room > self.limit:
            return None
        refs, texts = context.refer_prefix(row, self.view)
        refs["window"] = to_ranges(int(message.id or 0) for message in step.messages)
        call = _find_cached_call(row)
        if call is None or not _begins_alike(call.refs, refs):
            return None
        return Prefix(call.model, messages, refs, texts)


def _find_cached_call(conversation: Conversation) -> ModelCall | None:
    """Return the last request for a reply if most of it came from the cache."""
    calls = conversation.model_calls.filter(purpose=ModelCall.Purpose.REPLY)
    since = timezone.now() - CACHE_LASTS
    last = calls.filter(created_at__gte=since).order_by("-id").first()
    cached = last.tokens_cached or 0 if last else 0
    is_most = last and cached * 2 >= (last.tokens_input or 0)
    return last if is_most and cached >= LEAST_CACHED else None


def _begins_alike(sent: Mapping[str, Any], refs: Mapping[str, Any]) -> bool:
    """Return whether a request began with what these references name.

    Its window must begin with the same message. In a squeezed request, messages may
    have been shortened.
    """
    is_same = all(sent.get(name) == refs.get(name) for name in AHEAD_REFS)
    starts = [each["window"][0][0] for each in (sent, refs) if each.get("window")]
    # The prefix has the names of images, the request had the images.
    parts = ("shortened", "left_out", "images")
    is_whole = not any(map(sent.get, parts))
    return is_same and is_whole and len(starts) == 2 and starts[0] == starts[1]


def _first_turn(messages: list[BaseMessage]) -> list[BaseMessage]:
    """Return the next message to be answered, and its steps so far."""
    starts = [*find_turn_starts(messages), len(messages)]
    following = next((start for start in starts if start), 0)
    return messages[:following]
