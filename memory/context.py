"""The context of a request: what the model sees, built from the tables.

It is kept by reference; view/rebuilding.py rebuilds it later and proves it by its hash.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.db.models.functions import Left
from langchain_core.messages import BaseMessage, SystemMessage

from . import prompts, versions
from .engine import budget
from .engine.attachments import SHORTENED
from .engine.compose import (
    USUAL_SHAPE,
    Context,
    Shape,
    compose_context,
    digest_wire,
    make_fence,
    to_wire,
)
from .engine.policy import Policy
from .engine.rules import choice
from .engine.search import excerpts
from .engine.search.excerpts import RecallNote
from .engine.tokens import (
    Parts,
    TokenCounter,
    count_parts,
    remember_counts,
    scale_counter,
)
from .engine.tools import fitting, rounds
from .files import passage_source
from .images import image_source
from .models import SENT, Conversation, Message, Summary, as_langchain, replace_columns
from .ranges import to_ranges
from .rules import rule_source
from .rules.rule_source import StandingRule
from .search import recall
from .sql import prepared_rows


@dataclass(frozen=True, slots=True)
class ConversationView:
    """The parts of a conversation that the model sees, and their sources.

    The messages are as they are stored; in the context, tool calls have their results.
    """

    context: Context
    summaries: list[Summary]
    pinned: list[BaseMessage]
    window: list[BaseMessage]
    recalled: list[RecallNote]
    newest: BaseMessage | None
    memory_version: int
    steps: list[BaseMessage] = field(default_factory=list)
    rules: list[StandingRule] = field(default_factory=list)
    facts: list[StandingRule] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class HeldContext:
    """The part of a conversation that the provider holds, rebuilt from requests."""

    # As it was sent, and its text.
    system: Any
    instructions: str
    tools: list[dict[str, Any]]
    # In the form of the API, and the rows of the transcript.
    wire: list[dict[str, Any]]
    messages: list[BaseMessage]
    sha256: str
    is_proved: bool


@dataclass(frozen=True, slots=True)
class RequestContext:
    """A context, its messages to send, the request's `messages` and the references."""

    context: Context
    refs: dict[str, Any]
    messages: list[BaseMessage]
    wire: list[dict[str, Any]]
    sha256: str
    tokens: int  # estimated
    # Tokens of each part, in the order of the request.
    parts: Parts = ()
    # The definitions of the tools that the model may call, in OpenAI's form.
    tools: Sequence[dict[str, Any]] = ()
    # Of one that is not sent yet: the model, and what else the request says.
    model: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    view: ConversationView | None = None  # None: rebuilt later
    # Of one that differs for the next message: the request as it would be otherwise.
    usual: "RequestContext | None" = None
    # The texts that the references name by their hash.
    texts: dict[str, str] = field(default_factory=dict)
    # Of a rebuilt context: the summaries in it.
    summaries: list[Summary] = field(default_factory=list)
    # Rebuilds what the provider holds of an external request; None: it holds nothing.
    read_held: Callable[[], "HeldContext"] | None = None
    # Of an external request: the body as it was sent.
    body: bytes = b""

    @property
    def added(self) -> int:
        """Tokens beside the messages: tools, and what the provider adds."""
        return sum(n for name, n in self.parts if name in ("tools", "provider"))


def find_system_prompt(conversation: Conversation) -> str:
    return conversation.system_prompt or settings.SYSTEM_PROMPT


def get_fence(conversation: Conversation) -> str:
    """Return the words around the summaries; a policy can have its own."""
    return make_fence(conversation.get_policy().final_prompt)


def visible_messages(conversation: Conversation) -> QuerySet[Message]:
    """Return the messages that were not removed from the model's view."""
    return _not_removed(conversation.messages)


def _not_removed(rows: Any) -> QuerySet[Message]:
    shown = rows.filter(excluded_at=None, superseded_at=None, deleted_at=None)
    return shown.order_by("seq")


def request_limit(context_window: int) -> int:
    """Return the tokens that a request may have, so that the reply still fits.

    At most a quarter of the window is kept free for the reply.
    """
    reserve = min(settings.REPLY_RESERVE, context_window // 4)
    return max(1, context_window - reserve)


def policy_within(conversation: Conversation, policy: Policy, limit: int) -> Policy:
    """Return the policy, capped by what requests of `limit` tokens can hold."""
    system = conversation_counter(conversation)(
        [SystemMessage(find_system_prompt(conversation))]
    )
    return budget.cap_policy(policy, limit - system)


def conversation_counter(conversation: Conversation) -> TokenCounter:
    """Return the token estimate, calibrated by the provider's reports so far."""
    return scale_counter(conversation.token_ratio)


def estimate_overhead(conversation: Conversation, limit: int | None = None) -> int:
    """Return the tokens that the provider adds to every request.

    The number is an estimate, so it is at most half of the request.
    """
    most = limit // 2 if limit else conversation.token_overhead
    return min(conversation.token_overhead, most)


def read_steps(newest: Message) -> list[Message]:
    """Return the messages after `newest`, up to the next one of the user.

    These are the steps that its turn has taken so far. A late result belongs to no
    turn.
    """
    rows = visible_messages(newest.conversation).filter(seq__gt=newest.seq)
    users = rows.filter(role=Message.Role.USER)
    if (following := users.values_list("seq", flat=True).first()) is not None:
        rows = rows.filter(seq__lt=following)
    return list(rows.filter(late_for=None))


def read_view(
    conversation: Conversation,
    *,
    newest: Message | None = None,
    steps: Sequence[Message] = (),
    limit: int | None = None,
    with_images: bool = True,
) -> ConversationView:
    """Return the view to answer `newest` in; without it, the view of all messages.

    `steps`: the messages that the turn of `newest` has made so far.
    """
    summaries = versions.active_summaries(conversation)
    cutoff = versions.last_covered(summaries)
    edges = {"cutoff": cutoff} if cutoff else {}
    if newest:
        edges["before"] = newest.seq
    shown = _select_shown(conversation=conversation.pk, **edges)
    found = [as_langchain(*values) for values in shown]
    asked = newest.to_langchain() if newest else None
    if with_images:
        seen = [*found, asked] if asked else found
        image_source.note_images(conversation, seen, newest)
    window = [message for message in found if int(message.id) > cutoff]
    pinned = found[: len(found) - len(window)]
    standing = (
        rule_source.find_source("rules").list_standing(
            conversation, before=newest and newest.seq
        ),
        rule_source.find_source("facts").list_standing(conversation),
    )
    room, count_tokens = budget.for_rules(limit), conversation_counter(conversation)
    rules, facts = (
        choice.choose_rules(each, room=room, count_tokens=count_tokens)
        for each in standing
    )
    view = ConversationView(
        Context(()),
        summaries,
        pinned,
        window,
        find_notes(conversation, newest, cutoff, found, limit) if newest else [],
        asked,
        conversation.memory_version,
        [row.to_langchain() for row in steps],
        rules,
        facts,
    )
    return _compose_view(conversation, view)


@prepared_rows()
def _select_shown(
    conversation: Any, before: Any = None, cutoff: Any = None
) -> QuerySet[Any]:
    """Select the messages after the summaries, and pinned ones before."""
    rows = _not_removed(Message.objects.filter(conversation=conversation))
    if before:
        rows = rows.filter(seq__lt=before)
    if cutoff:
        # With OR, SQLite would read the whole conversation.
        behind = rows.filter(seq__lte=cutoff, pinned_at__isnull=False).order_by()
        rows = rows.filter(seq__gt=cutoff).order_by()
        rows = rows.union(behind, all=True).order_by("seq")
    return rows.values_list(*SENT)


def _compose_view(
    conversation: Conversation, view: ConversationView, cuts: fitting.Cuts | None = None
) -> ConversationView:
    """Return the view with its context, in which messages are cut by `cuts`."""
    policy = conversation.get_policy()
    window = fitting.prepare_messages(
        view.window, clip=policy.truncate_tool_args, cuts=cuts
    )
    context = compose_context(
        system_prompt=find_system_prompt(conversation),
        blocks=[versions.to_block(summary) for summary in view.summaries],
        pinned=view.pinned,
        facts=[fact.block for fact in view.facts],
        rules=[rule.block for rule in view.rules],
        window=window,
        recalled=[note.message for note in view.recalled],
        newest=prepare_newest(view.newest),
        steps=fitting.prepare_messages(view.steps, cuts=cuts),
        fence=make_fence(policy.final_prompt),
    )
    return replace(view, context=context)


def prepare_newest(newest: BaseMessage | None) -> BaseMessage | None:
    """Quote a late result, which a turn of its own answers, like other ones."""
    return fitting.prepare_messages([newest])[0] if newest else None


def advance_view(
    view: ConversationView, conversation: Conversation, reply: Message
) -> ConversationView | None:
    """Return what read_view() would find after `newest` of this view was answered.

    Return None if something else may have changed too, by the conversation's row, or if
    tool calls were answered meanwhile.
    """
    is_last = conversation.next_seq == reply.seq + 1
    is_same = conversation.memory_version == view.memory_version
    # The row does not say which rules and facts are in force.
    has_facts = conversation.get_policy().facts != "off"
    may_differ = bool(view.steps or view.rules or conversation.rule_count or has_facts)
    if may_differ or not (is_last and is_same and view.newest):
        return None
    window = [*view.window, view.newest, reply.to_langchain()]
    answered = replace(view, window=window, recalled=[], newest=None)
    return _compose_view(conversation, answered)


def build_request_context(
    conversation: Conversation,
    *,
    newest: Message | None = None,
    steps: Sequence[Message] = (),
    model: str = "",
    limit: int | None = None,
    shape: Shape = USUAL_SHAPE,
    with_images: bool = True,
    tool_tokens: int = 0,
) -> RequestContext:
    """Build the context to answer `newest`; without it, what would be sent now.

    `steps`: the turn's messages so far, as of read_steps(). `shape`: the form that the
    model's provider accepts. `with_images`: whether it accepts images. `tool_tokens`:
    the tokens of the definitions of its tools.

    `limit` is a hard ceiling in tokens, kept by fitting.squeeze_context(): tool results
    become shorter, and the oldest whole turns of the window are left out until the rest
    fits. Compaction keeps the window far below it; the ceiling matters in a long turn
    of tools, and while the summariser fails.
    """
    view = read_view(
        conversation, newest=newest, steps=steps, limit=limit, with_images=with_images
    )
    count_tokens = remember_counts(conversation_counter(conversation))
    whole, cuts = view, {}
    if limit:
        most = limit - estimate_overhead(conversation, limit)
        fitted, cuts = fitting.squeeze_context(view.context, most, count_tokens)
        if fitted is not view.context:
            view = _compose_view(conversation, _keep_sent(view, fitted), cuts)
    refs = _make_refs(conversation, view, cuts)
    left_out = _collect_numbers(whole) - _collect_numbers(view)
    refs |= {"left_out": to_ranges(left_out), **shape.to_refs()}
    extra = estimate_overhead(conversation, limit)
    if images := image_source.images_of(view.context.messages):
        refs["images"] = [[each.seq, each.place, each.tokens] for each in images]
    built = make_request_context(
        conversation, view.context, refs, model, extra, tool_tokens
    )
    return replace(built, view=whole, texts=refer_prefix(conversation, view)[1])


def _keep_sent(view: ConversationView, fitted: Context) -> ConversationView:
    """Return the view with only the messages that are still in the context."""
    sent = {fitting.number_of(message) for message in fitted.messages}
    return replace(
        view,
        window=[each for each in view.window if fitting.number_of(each) in sent],
        steps=[each for each in view.steps if fitting.number_of(each) in sent],
        recalled=view.recalled if fitted.get_section("recalled") else [],
    )


def _collect_numbers(view: ConversationView) -> set[int]:
    return {int(message.id) for message in (*view.window, *view.steps)}


def _make_refs(
    conversation: Conversation, view: ConversationView, cuts: fitting.Cuts
) -> dict[str, Any]:
    """Return the references to the parts of the view's context.

    Tool calls add to them only where there are any.
    """
    refs: dict[str, Any] = {
        **refer_prefix(conversation, view)[0],
        "window": to_ranges(int(message.id) for message in view.window),
        "left_out": [],
        **refer_notes(view.recalled),
        "newest": int(view.newest.id) if view.newest else None,
    }
    if view.steps:
        refs["steps"] = to_ranges(int(message.id) for message in view.steps)
    clip = conversation.get_policy().truncate_tool_args
    if clip and any(map(rounds.calls_of, view.window)):
        refs["clipped"] = clip
    if cuts:
        # Number, part, and characters sent.
        refs["shortened"] = [
            [seq, part, chars]
            for seq, levels in sorted(cuts.items())
            for part, chars in sorted(levels.items())
        ]
    return refs


def refer_notes(found: Sequence[RecallNote]) -> dict[str, Any]:
    notes = [note for note in found if note.place is None]
    files = passage_source.refer_passages(found)
    lines = [
        [note.seq] for note in notes if excerpts.LINE in note.message.additional_kwargs
    ]
    return {
        # Messages sent without what the line above shows.
        **({"lines": lines} if lines else {}),
        # Passages of long files: number, place, start and end in the text.
        **({"files": files} if files else {}),
        "recalled": [note.seq for note in notes],
        # Messages sent in part: number, start and end in the text.
        "excerpts": [[note.seq, *note.span] for note in notes if note.span],
        # Messages with a value that a later message replaces: both numbers.
        "replaced": [[n.seq, n.replaced_by] for n in notes if n.replaced_by],
        # The day of the replacement; requests of older releases have none.
        "until": [[note.seq, note.until] for note in notes if note.until],
    }


def refer_prefix(
    conversation: Conversation, view: ConversationView
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the references to what precedes the window, and their texts by hash."""
    system, around = find_system_prompt(conversation), get_fence(conversation)
    refs: dict[str, Any] = {
        "system": prompts.hash_text(system),
        "fence": prompts.hash_text(around),
        "summaries": [summary.version for summary in view.summaries],
        "pinned": to_ranges(int(message.id or 0) for message in view.pinned),
    }
    if view.rules:
        # The form of a reference is in memory/rules/rule_source.py.
        refs["rules"] = [rule.ref for rule in view.rules]
    own = {rule.ref[1]: rule.block.text for rule in view.rules if rule.own_words}
    if view.facts:
        refs["facts"] = [fact.ref for fact in view.facts]
        own |= {each.ref[1]: rule_source.name_fact(each.block) for each in view.facts}
    return refs, {refs["system"]: system, refs["fence"]: around, **own}


def find_notes(
    conversation: Conversation,
    newest: Message,
    cutoff: int,
    shown: list[BaseMessage],
    limit: int | None,
) -> list[RecallNote]:
    """Search for `newest` in messages, and then in long files."""
    count_tokens = conversation_counter(conversation)
    return [
        *recall_notes(conversation, newest, cutoff, shown, limit),
        *passage_source.find_file_notes(conversation, newest, limit, count_tokens),
    ]


def recall_notes(
    conversation: Conversation,
    newest: Message,
    cutoff: int,
    shown: list[BaseMessage],
    limit: int | None,
) -> list[RecallNote]:
    """Return good matches for `newest` from outside the window, oldest first.

    They come from messages before the window, and from attachments of which only a part
    is `shown`, as far as the policy has room. Messages that are shown whole are not
    repeated.
    """
    behind = min(cutoff + 1, newest.seq)
    in_part = {int(each.id) for each in shown if each.additional_kwargs.get(SHORTENED)}
    if behind <= 1 and not in_part:
        return []
    policy = conversation.get_policy()
    if limit:
        policy = policy_within(conversation, policy, limit)
    if not policy.recall_tokens:
        return []
    question = newest.typed
    find = partial(
        recall.recall_messages, conversation, question, limit=None, at=newest.created_at
    )
    hits = find(before_seq=behind)
    if in_part:
        known = {hit.seq for hit in hits}
        beside = find(before_seq=newest.seq)
        hits += [hit for hit in beside if hit.seq in in_part - known]
        hits.sort(key=lambda hit: -hit.fit)
    whole = {int(message.id) for message in shown} - in_part
    others = {hit.seq for hit in hits} - whole
    found = _select_found(conversation=conversation.pk, numbers=others)
    return excerpts.choose_excerpts(
        hits,
        # A message that only calls tools has nothing to quote.
        {int(message.id): message for message in _as_whole(found) if message.text},
        question,
        room=policy.recall_tokens,
        count_tokens=conversation_counter(conversation),
        later=[*shown, newest.to_langchain()],
    )


def read_whole(rows: QuerySet[Message]) -> list[BaseMessage]:
    """Return the messages with their whole texts, as a search finds them.

    A note can come from any part of a tool result, not only from the part that was
    sent.
    """
    return _as_whole(_with_whole_text(rows))


def _with_whole_text(rows: QuerySet[Message]) -> QuerySet[Any]:
    rows = rows.order_by("seq").annotate(whole=Left("text", recall.MAX_CHARS))
    return rows.values_list(*("whole" if name == "text" else name for name in SENT))


def _as_whole(found: Iterable[Any]) -> list[BaseMessage]:
    return [as_langchain(*replace_columns(row, sent_text="")) for row in found]


@prepared_rows()
def _select_found(conversation: Any, numbers: Any) -> QuerySet[Any]:
    rows = _not_removed(Message.objects.filter(conversation=conversation))
    return _with_whole_text(rows.filter(seq__among=numbers))


def make_request_context(
    conversation: Conversation,
    context: Context,
    refs: dict[str, Any],
    model: str,
    extra: int,
    tool_tokens: int = 0,
) -> RequestContext:
    """Make the request of a context and its references.

    `extra`: tokens that the provider adds, including the `tool_tokens`.
    """
    messages = image_source.join_images(conversation, context.messages)
    shape = Shape.from_refs(refs).narrow_to(messages)
    refs = {name: refs[name] for name in refs if name != "shape"} | shape.to_refs()
    messages = shape.apply_to(messages)
    wire = to_wire(messages, model=model)
    parts = count_parts(
        context.sections, ratio=conversation.token_ratio, tools=tool_tokens, added=extra
    )
    tokens = sum(count for _, count in parts)
    return RequestContext(
        context, refs, messages, wire, digest_wire(wire), tokens, parts
    )
