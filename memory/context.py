"""What the model sees: the context of a request built from the tables, kept by
reference, rebuilt later and proved by its hash.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from django.conf import settings
from django.db.models import Case, Count, Q, QuerySet, Value, When
from langchain_core.messages import BaseMessage, SystemMessage

from . import prompts, versions
from .engine import budget, excerpts
from .engine.compose import (
    USUAL_SHAPE,
    Context,
    Shape,
    compose,
    digest,
    fit,
    make_fence,
    to_wire,
)
from .engine.excerpts import Note
from .engine.policy import Policy
from .engine.tokens import TokenCounter, remembered, scaled
from .models import (
    Conversation,
    Message,
    ModelCall,
    Prompt,
    Summary,
    read_langchain,
)
from .ranges import Ranges, to_ranges, within
from .search import recall

# Hits looked at for the notes on what was said earlier; the policy limits their size.
MAX_RECALLED = 10


@dataclass(frozen=True, slots=True)
class View:
    """What the model sees of a conversation, and what it was made of."""

    context: Context
    summaries: list[Summary]
    pinned: list[BaseMessage]
    window: list[BaseMessage]
    recalled: list[Note]
    newest: BaseMessage | None
    memory_version: int


@dataclass(frozen=True, slots=True)
class Built:
    """A context, the messages to send and the request's `messages` array made of it,
    and how it was made."""

    context: Context
    refs: dict[str, Any]
    messages: list[BaseMessage]
    wire: list[dict[str, Any]]
    sha256: str
    tokens: int  # estimated
    view: View | None = None  # None: rebuilt later
    # The texts that the references name by their hash.
    texts: dict[str, str] = field(default_factory=dict)


def system_prompt(conversation: Conversation) -> str:
    return conversation.system_prompt or settings.SYSTEM_PROMPT


def fence(conversation: Conversation) -> str:
    """The words around the summaries; a policy can have its own."""
    return make_fence(conversation.get_policy().final_prompt)


def visible(conversation: Conversation) -> QuerySet[Message]:
    """The messages that were not removed from the model's view."""
    rows = conversation.messages.filter(
        excluded_at=None, superseded_at=None, deleted_at=None
    )
    return rows.order_by("seq")


def request_limit(context_window: int) -> int:
    """Tokens that a request may have, so that the reply still fits. At most a quarter
    of the window is kept free for it."""
    reserve = min(settings.REPLY_RESERVE, context_window // 4)
    return max(1, context_window - reserve)


def policy_within(conversation: Conversation, policy: Policy, limit: int) -> Policy:
    """The policy, capped by what requests of `limit` tokens can hold."""
    system = counter(conversation)([SystemMessage(system_prompt(conversation))])
    return budget.cap(policy, limit - system)


def counter(conversation: Conversation) -> TokenCounter:
    """The token estimate, calibrated by what the provider reported so far."""
    return scaled(conversation.token_ratio)


def overhead(conversation: Conversation, limit: int | None = None) -> int:
    """Tokens that the provider adds to every request: an estimate, so at most half of
    the request."""
    most = limit // 2 if limit else conversation.token_overhead
    return min(conversation.token_overhead, most)


def read_view(
    conversation: Conversation,
    *,
    newest: Message | None = None,
    limit: int | None = None,
) -> View:
    """The view to answer `newest` in; without it, of all that was said."""
    summaries = versions.active(conversation)
    cutoff = versions.cutoff(summaries)
    rows = visible(conversation)
    if newest:
        rows = rows.filter(seq__lt=newest.seq)
    shown = rows.filter(seq__gt=cutoff)
    if cutoff:
        # Not by OR: SQLite would read the whole conversation.
        behind = rows.filter(seq__lte=cutoff, pinned_at__isnull=False).order_by()
        shown = shown.order_by().union(behind, all=True).order_by("seq")
    found = read_langchain(shown)
    window = [message for message in found if int(message.id) > cutoff]
    pinned = found[: len(found) - len(window)]
    recalled = _recall(conversation, newest, cutoff, pinned, limit) if newest else []
    context = compose(
        system_prompt=system_prompt(conversation),
        blocks=[versions.to_block(summary) for summary in summaries],
        pinned=pinned,
        window=window,
        recalled=[note.message for note in recalled],
        newest=newest.to_langchain() if newest else None,
        fence=fence(conversation),
    )
    said, *_ = context.section("newest") or (None,)
    version = conversation.memory_version
    return View(context, summaries, pinned, window, recalled, said, version)


def after(view: View, conversation: Conversation, reply: Message) -> View | None:
    """What read_view() would find, now that `newest` of this view was answered. None:
    something else has changed as well, by what the conversation's row says."""
    is_last = conversation.next_seq == reply.seq + 1
    is_same = conversation.memory_version == view.memory_version
    if not (is_last and is_same and view.newest):
        return None
    window = [*view.window, view.newest, reply.to_langchain()]
    context = compose(
        system_prompt=system_prompt(conversation),
        blocks=[versions.to_block(summary) for summary in view.summaries],
        pinned=view.pinned,
        window=window,
        fence=fence(conversation),
    )
    return replace(view, context=context, window=window, recalled=[], newest=None)


def build(
    conversation: Conversation,
    *,
    newest: Message | None = None,
    model: str = "",
    limit: int | None = None,
    shape: Shape = USUAL_SHAPE,
) -> Built:
    """The context to answer `newest`; without it, what would be sent now. `shape`: the
    one that the model's provider takes.

    `limit` is a hard ceiling in tokens: the oldest whole turns of the window are left
    out until the rest fits. Compaction keeps the window far below it; it matters only
    while the summariser fails.
    """
    view = read_view(conversation, newest=newest, limit=limit)
    context, recalled = view.context, view.recalled
    count_tokens = remembered(counter(conversation))
    if limit:
        context = fit(context, limit - overhead(conversation, limit), count_tokens)
        recalled = recalled if context.section("recalled") else []
    sent = {int(message.id) for message in context.section("window")}
    system, around = system_prompt(conversation), fence(conversation)
    refs = {
        "system": prompts.name_of(system),
        "fence": prompts.name_of(around),
        "summaries": [summary.version for summary in view.summaries],
        "pinned": to_ranges(int(message.id) for message in view.pinned),
        "window": to_ranges(sent),
        "left_out": to_ranges({int(message.id) for message in view.window} - sent),
        "recalled": [note.seq for note in recalled],
        # Of which of these only a part was sent: number, start and end in the text.
        "excerpts": [[note.seq, *note.span] for note in recalled if note.span],
        "newest": newest.seq if newest else None,
        **shape.to_refs(),
    }
    extra = overhead(conversation, limit)
    built = _built(context, refs, model, count_tokens, extra)
    texts = {refs["system"]: system, refs["fence"]: around}
    return replace(built, view=view, texts=texts)


def _recall(
    conversation: Conversation,
    newest: Message,
    cutoff: int,
    pinned: list[BaseMessage],
    limit: int | None,
) -> list[Note]:
    """Good matches for `newest` behind the window, oldest first, as far as the policy
    has room for them."""
    behind = min(cutoff + 1, newest.seq)
    if behind <= 1:
        return []
    policy = conversation.get_policy()
    if limit:
        policy = policy_within(conversation, policy, limit)
    if not policy.recall_tokens:
        return []
    hits = recall.search(
        conversation, newest.text, limit=MAX_RECALLED, before_seq=behind
    )
    others = {hit.seq for hit in hits} - {int(message.id) for message in pinned}
    found = read_langchain(visible(conversation).filter(seq__in=others))
    return excerpts.choose(
        hits,
        {int(message.id): message for message in found},
        newest.text,
        room=policy.recall_tokens,
        count_tokens=counter(conversation),
    )


def rebuild(call: ModelCall) -> Built:
    """The context of a recorded request, from its references alone."""
    conversation, refs = call.conversation, call.refs
    # A text that is gone is "", so the hash of the whole differs.
    rows = Prompt.objects.in_bulk([refs["system"], refs["fence"]])
    texts = {sha256: row.text for sha256, row in rows.items()}
    blocks = conversation.summaries.filter(version__in=refs["summaries"])
    newest = conversation.messages.filter(seq=refs["newest"]).first()

    def read(ranges: Ranges) -> list[BaseMessage]:
        rows = conversation.messages.filter(within(ranges))
        return read_langchain(rows.order_by("seq"))

    spans = {str(seq): (start, end) for seq, start, end in refs.get("excerpts", ())}
    recalled = [
        excerpts.cut(message, spans[message.id]) if message.id in spans else message
        for message in read(to_ranges(refs["recalled"]))
    ]
    context = compose(
        system_prompt=texts.get(refs["system"], ""),
        fence=texts.get(refs["fence"], ""),
        blocks=[versions.to_block(row) for row in blocks.order_by("first_seq")],
        pinned=read(refs["pinned"]),
        window=read(refs["window"]),
        recalled=recalled,
        newest=newest.to_langchain() if newest else None,
    )
    count_tokens = counter(conversation)
    return _built(context, refs, call.model, count_tokens, overhead(conversation))


def verify(call: ModelCall) -> bool:
    """Whether the rebuilt context of a reply is what was sent, byte for byte."""
    return rebuild(call).sha256 == call.sha256


def is_erased(call: ModelCall) -> bool:
    """Whether the user has since deleted a message that was sent with this request, or
    that a summary in it covered."""
    refs = call.refs
    newest = [[refs["newest"]] * 2] if refs["newest"] else []
    recalled = to_ranges(refs["recalled"])
    ranges = [*refs["window"], *refs["pinned"], *recalled, *newest]
    rows = call.conversation.messages.exclude(deleted_at=None)
    if any(rows.filter(seq__range=(first, last)).exists() for first, last in ranges):
        return True
    sent = call.conversation.summaries.filter(version__in=refs["summaries"])
    return sent.filter(status=Summary.Status.ERASED).exists()


def keep_prompts(conversation: Conversation, built: Built) -> None:
    """Store the texts that a context refers to by hash, as they are in it: those of the
    conversation may be others by now. Call it in the transaction that records it, after
    the row of its conversation was locked."""
    prompts.keep(conversation, built.texts)


def count_places(conversation: Conversation, left_out: Ranges = ()) -> dict[str, int]:
    """How many messages are where in the model's view.

    "window", "summary", "excluded", "superseded", "deleted"; "left" are those that have
    left the window without a summary; "unsent" are those of the window that the next
    request leaves out, as they do not fit; "lost" are those before the window that no
    active summary covers, which must never happen.
    """
    summaries = versions.active(conversation)
    covered, left = _split(summaries)
    place = Case(
        When(deleted_at__isnull=False, then=Value("deleted")),
        When(superseded_at__isnull=False, then=Value("superseded")),
        When(excluded_at__isnull=False, then=Value("excluded")),
        When(covered, then=Value("summary")),
        When(left, then=Value("left")),
        When(seq__lte=versions.cutoff(summaries), then=Value("lost")),
        When(within(left_out), then=Value("unsent")),
        default=Value("window"),
    )
    rows = conversation.messages.order_by().values_list(place)
    return dict(rows.annotate(Count("pk")))


def count_sent(call: ModelCall) -> dict[str, int]:
    """How many of the messages before a reply were where in its request.

    "window", "newest", "summary"; "left" are those that had left the window without a
    summary; "unsent" are those that the references do not name: removed from the view
    then or since, or left out as they did not fit.
    """
    conversation, refs = call.conversation, call.refs
    sent = conversation.summaries.filter(version__in=refs["summaries"])
    newest = Q(seq=refs["newest"])
    in_window = within(refs["window"])
    covered, left = _split(sent)
    apart = ~in_window & ~newest
    rows = conversation.messages.filter(seq__lt=call.message.seq)
    counts = rows.aggregate(
        window=Count("pk", in_window),
        newest=Count("pk", newest),
        summary=Count("pk", covered & apart),
        left=Count("pk", left & apart),
        unsent=Count("pk", ~covered & ~left & apart),
    )
    return {kind: count for kind, count in counts.items() if count}


def _split(summaries: Iterable[Summary]) -> tuple[Q, Q]:
    """The messages that summaries stand for, and those that have only left the window.

    Those of a version that was erased since count as summarised.
    """
    spans: tuple[Ranges, Ranges] = ([], [])
    for each in summaries:
        spans[each.is_trimmed].append([each.first_seq, each.last_seq])
    covered, left = map(within, spans)
    return covered, left


def _built(
    context: Context,
    refs: dict[str, Any],
    model: str,
    count_tokens: TokenCounter,
    extra: int,
) -> Built:
    messages = Shape.of(refs).apply(context.messages)
    wire = to_wire(messages, model=model)
    tokens = count_tokens(context.messages) + extra
    return Built(context, refs, messages, wire, digest(wire), tokens)
