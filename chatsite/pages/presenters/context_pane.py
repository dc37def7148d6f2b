"""*The model sees*: the context of the next turn, or of one reply as it was sent.

It is given as plain values for the templates.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

from django.db.models import QuerySet
from django.db.models.functions import Length
from django.urls import reverse
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from langchain_core.messages import AIMessage, BaseMessage

from chatsite import slots
from chatsite.features.tools import registry
from chatsite.llm import dialects, pricing, providers
from chatsite.turns.requests import (
    find_left_out,
    has_request,
    model_of,
    next_turn,
    reply_call,
)
from memory import context, versions
from memory.compaction import lease
from memory.engine import triggers
from memory.engine.attachments import (
    SHORTENED,
    Attachment,
    has_attachments,
    unmark_attachments,
)
from memory.engine.compose import Section
from memory.engine.cut_points import is_late
from memory.engine.policy import Policy
from memory.engine.search.file_passages import Passage, read_quoted
from memory.models import Conversation, Message, ModelCall, Summary
from memory.ranges import in_ranges, to_ranges
from memory.sql import prepared_rows
from memory.view import places, rebuilding
from memory.view.places import PlaceCounts
from memory.view.variation import SWITCHED, find_varied

from ..forms import preset_name
from .desk import Desk, count_off, describe_changes, read_desk, read_off, with_acts
from .gauge import TITLES, Gauge, describe_trigger_rule, make_gauge
from .rules import SentRule, SentTool, list_sent_facts, list_sent_rules
from .sheets import (
    Glance,
    Sheet,
    describe_read_messages,
    describe_sheets,
    list_glances,
    make_sheets,
)

MAX_REPLIES = 200
# Of a message, so much is looked through for the line that shows its beginning.
BEGINNING_CHARS = 2_500
# The sections of which all messages are quoted in one.
QUOTED = ("pinned", "recalled")
ROLES = {"human": "user", "ai": "assistant", "tool": "tool"}
# The names of tools in a pane, and in the references of a past request.
OF_TOOLS = ("tools", "tools_refused", "tools_left_out")


@dataclass(frozen=True, slots=True)
class SeenImage:
    """An image of a message; without `tokens` only its name is sent.

    `address`: where its owner gets it.
    """

    name: str
    width: int
    height: int
    tokens: int | None
    address: str

    @property
    def is_sent(self) -> bool:
        return self.tokens is not None


@dataclass(frozen=True, slots=True)
class SeenMessage:
    """One message of the transcript that the model sees."""

    seq: int
    # As in the transcript, or "quote": a result that it gets in words of the site.
    role: str
    text: str
    # Tool calls that it asks for, as the model gets them: name and arguments.
    calls: tuple[tuple[str, str], ...] = ()
    # Characters that are sent of it and that it has, where some were left out.
    shortened: tuple[int, int] | None = None
    # Whether only a part of its attachments is sent.
    is_in_part: bool = False
    images: tuple[SeenImage, ...] = ()
    # It is switched off; `can_switch`: in a request that is not sent yet.
    is_off: bool = False
    can_switch: bool = False

    @classmethod
    def from_message(cls, message: BaseMessage) -> "SeenMessage":
        calls = message.tool_calls if isinstance(message, AIMessage) else ()
        return cls(
            int(message.id),
            "quote" if is_late(message) else ROLES[message.type],
            str(message.content),
            tuple((call["name"], dump_arguments(call)) for call in calls),
            is_in_part=SHORTENED in message.additional_kwargs,
        )

    @property
    def in_words(self) -> str:
        """The beginning of the text for people, without marks around attachments."""
        return unmark_attachments(self.text[:BEGINNING_CHARS])

    @property
    def sent_chars(self) -> int:
        return len(self.text) + sum(len(arguments) for _name, arguments in self.calls)

    @property
    def is_of_tools(self) -> bool:
        return bool(self.calls) or self.role == Message.Role.TOOL


def dump_arguments(call: Mapping[str, Any]) -> str:
    """Arguments of a call as they are in a request."""
    return json.dumps(call["args"], ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class ContextSection:
    """One section of the right pane, in the order of the payload."""

    kind: str  # of memory.engine.compose.Kind
    title: str
    tokens: int
    messages: tuple[SeenMessage, ...] = ()
    summaries: tuple[Summary, ...] = ()
    text: str = ""
    rules: tuple[SentRule, ...] = ()
    tools: tuple[SentTool, ...] = ()
    held: context.HeldContext | None = None
    # Whether it can be switched off, and the keys of what is off.
    can_switch: bool = False
    off: frozenset[str] = frozenset()

    @property
    def is_off(self) -> bool:
        return self.kind in self.off

    @property
    def count(self) -> int:
        """The number of its summaries, rules, tools or messages that are sent."""
        if self.is_off:
            return 0
        versions = (f"summary-{each.version}" for each in self.summaries)
        parts = (*self.rules, *self.messages)
        return max(
            sum(key not in self.off for key in versions),
            sum(not part.is_off for part in parts),
            len(self.tools),
        )

    @property
    def in_words(self) -> str:
        """The text for people, without marks around attachments."""
        return unmark_attachments(self.text)

    @property
    def passages(self) -> list[Passage]:
        """The quoted passages of long files."""
        return read_quoted(self.text) if self.kind == "recalled" else []

    @property
    def last_seq(self) -> int | None:
        return self.messages[-1].seq if self.messages else None

    @property
    def glances(self) -> list[Glance]:
        return list_glances(self)


@dataclass(frozen=True, slots=True)
class ContextPane:
    """The right pane. `reply` is the shown reply's number, None for the next turn."""

    reply: int | None
    sections: tuple[ContextSection, ...]
    gauge: Gauge
    # Messages by kind of place, now or when the shown reply was asked for.
    counts: PlaceCounts
    model: str = ""
    model_name: str = ""
    is_demo: bool = False
    call: ModelCall | None = None
    verified: bool | None = None
    replies: tuple[int, ...] = ()  # numbers to choose from, newest first
    request_messages: Sequence[dict[str, Any]] = ()
    sha256: str = ""
    body_sha256: str = ""
    policy: str = ""
    policy_error: str = ""  # why the stored policy is not in force
    compact_rule: str = ""
    # What leaves the window is not summarised.
    is_trimming: bool = False
    compaction_stopped: bool = False
    # Names of what the model may call, or could call for the shown reply.
    tools: tuple[str, ...] = ()
    # Those that a request goes without, because the model's server refuses tools.
    tools_refused: tuple[str, ...] = ()
    # Those that it takes no request with, or no more beside the others.
    tools_left_out: tuple[str, ...] = ()
    # The names of images of which the model gets only that.
    images_unsent: tuple[str, ...] = ()
    # What apps show below the sections of the next request, as HTML.
    below: str = ""
    # What its owner has changed in the next request.
    desk: Desk | None = None
    # How the shown reply's request differed from the usual one, in words.
    varied: tuple[str, ...] = ()
    # hash_newest() of a draft.
    newest: str = ""

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def sheets(self) -> tuple[Sheet, ...]:
        free = [part.tokens for part in self.gauge.segments if part.kind == "free"]
        usual = self.desk.usual if self.desk else 0
        return make_sheets(self.sections, sum(free), usual)

    @property
    def contents(self) -> str:
        """The content of the model's request in words."""
        return describe_sheets(self.sections)

    @property
    def account(self) -> str:
        """The sentence that leads: how many of the messages the model reads."""
        return describe_read_messages(
            self.counts, self.sections, reply=self.reply, is_cut=self.is_cut
        )

    @property
    def tokens_read(self) -> int:
        """Tokens that the provider reported for the reply, or an estimate."""
        reported = self.call.tokens_input if self.reply and self.call else None
        return self.gauge.used if reported is None else reported

    @property
    def is_reported(self) -> bool:
        return bool(self.reply and self.call and self.call.tokens_input is not None)

    @property
    def is_cut(self) -> bool:
        """True if the provider has read only a part of what the call has sent."""
        return bool(self.call and self.call.is_cut)

    @property
    def set_window(self) -> int:
        """The context window of the call's model, as the site has it."""
        return providers.context_window(self.call.model) if self.call else 0

    @property
    def figures(self) -> tuple[str, ...]:
        """The price of the request, and how much of it came from the cache."""
        call = self.call if self.reply else None
        cached = (call and call.tokens_cached) or 0
        price = pricing.price_tokens(self.model_name, self.tokens_read, cached=cached)
        share = cached / self.tokens_read if self.tokens_read else 0
        words = _("%(share)s cached") % {"share": f"{share:.0%}"}
        found = (price and pricing.format_dollars(price), cached and words)
        return tuple(filter(None, found))

    @property
    def accounted(self) -> int:
        missing = ("lost",) if self.reply else ("lost", "unsent")
        return self.total - sum(self.counts.get(kind, 0) for kind in missing)

    @property
    def drift(self) -> str:
        """The error of the estimate, "" where there was none."""
        error = self.call.estimate_error if self.call else ""
        return "" if error == "0 %" else error


def model_view(
    conversation: Conversation,
    *,
    reply: int | None = None,
    draft: str = "",
    files: Sequence[Attachment] = (),
) -> ContextPane:
    """Return the right pane; `draft` is being typed, with the `files` beside it.

    Raises ModelCall.DoesNotExist for a number that is no reply.
    """
    call = None if reply is None else reply_call(conversation, reply)
    if reply is not None and call is None:
        raise ModelCall.DoesNotExist
    if call:
        built, model = rebuilding.rebuild_context(call), call.model
        own = _describe_sent(call, built)
    else:
        built, model = next_turn(conversation, draft, files), model_of(conversation)
        own = _describe_next(conversation, built)
    # Facts change on other pages, too, which this one is not notified of.
    has_facts = any(each.kind == "facts" for each in built.context.sections)
    is_known = draft and not files and not has_facts
    drafted = [(built.refs["newest"], draft, ())] if is_known else []
    # Files alone are a draft as well.
    draft = draft or " " * bool(files)
    sections = tuple(_make_sections(conversation, built, draft, is_past=bool(call)))
    policy = _policy_in_force(conversation, built, sections)
    gauge = make_gauge(conversation, policy, sections, model)
    return ContextPane(
        reply=reply,
        sections=sections,
        gauge=gauge,
        model=providers.name_model(model),
        model_name=model,
        is_demo=providers.is_demo(model),
        replies=tuple(_select_replies(conversation=conversation.pk)),
        request_messages=built.wire,
        sha256=built.sha256,
        policy=preset_name(policy.preset),
        policy_error=conversation.policy_error,
        compact_rule=describe_trigger_rule(policy, gauge.window_limit),
        is_trimming=policy.strategy == "window",
        compaction_stopped=not lease.may_compact(conversation),
        images_unsent=_list_unsent(sections, files, built.refs),
        newest=hash_newest(conversation, drafted),
        **own,
    )


def hash_newest(conversation: Conversation, sent: Sequence[tuple[Any, ...]]) -> str:
    """Return a hash of the messages of a turn so far: number, text, attachments.

    A page that shows them as its draft need not load them when they are sent. "" if
    that may change other parts of the request, such as rules that the text replaces.
    """
    if not sent or conversation.rule_count or conversation.next_request:
        return ""
    return blake2b(repr(sent).encode(), digest_size=6).hexdigest()


def _describe_sent(call: ModelCall, built: context.RequestContext) -> dict[str, Any]:
    """Return the values of the pane that only a past request has."""
    is_same = rebuilding.is_sent(call, built)
    return {
        "call": call,
        "counts": places.count_sent(call),
        # None if a message of it was deleted: then it is unknown.
        "verified": None if not is_same and rebuilding.is_erased(call) else is_same,
        "body_sha256": rebuilding.find_body_hash(call),
        "varied": tuple(describe_changes(find_varied(built.refs), usual=())),
        **{kind: tuple(call.refs.get(kind, ())) for kind in OF_TOOLS},
    }


def _describe_next(
    conversation: Conversation, built: context.RequestContext
) -> dict[str, Any]:
    """Return the values of the pane that only the next request has."""
    latest = next(iter(_select_answered(conversation=conversation.pk)), None)
    counts = places.count_places(conversation, built.refs)
    return {
        "call": latest,
        "counts": count_off(counts, built) if built.usual else counts,
        "below": slots.draw("next", conversation=conversation, built=built),
        "desk": read_desk(conversation, built, latest),
        **dict(zip(OF_TOOLS, _find_tools(conversation), strict=True)),
    }


@prepared_rows()
def _select_answered(conversation: Any) -> QuerySet[ModelCall]:
    """Return the newest call that a reply came from."""
    rows = ModelCall.objects.filter(conversation=conversation, message__isnull=False)
    replies = rows.filter(purpose=ModelCall.Purpose.REPLY)
    return with_acts(replies).order_by("-id")[:1]


@prepared_rows()
def _select_replies(conversation: Any) -> QuerySet[Message, Any]:
    """Only those with a known request: there is nothing to show for the others."""
    rows = Message.objects.filter(has_request(), conversation=conversation)
    rows = rows.filter(role=Message.Role.ASSISTANT).order_by("-seq")
    return rows.values_list("seq", flat=True)[:MAX_REPLIES]


def _find_tools(conversation: Conversation) -> tuple[tuple[str, ...], ...]:
    """Return the names of the tools that the next request offers, lacks and leaves out.

    It lacks tools that the server refuses; others are left out beside the offered ones.
    """
    chosen = registry.list_offered(conversation)
    if not dialects.find_dialect(model_of(conversation)).has_tools:
        return (), chosen, ()
    left_out = find_left_out(conversation) if chosen else ()
    left = [name for name in chosen if name in left_out]
    return tuple(name for name in chosen if name not in left), (), tuple(left)


def _policy_in_force(
    conversation: Conversation,
    built: context.RequestContext,
    sections: Sequence[ContextSection],
) -> Policy:
    """Return the policy, with an adaptive one's threshold for this window's turns."""
    measures = triggers.measure_window(
        built.context.get_section("window"),
        count_tokens=context.conversation_counter(conversation),
    )
    blocks = [versions.to_block(row) for part in sections for row in part.summaries]
    return triggers.adapt_trigger(conversation.get_policy(), measures, blocks)


def _make_sections(
    conversation: Conversation,
    built: context.RequestContext,
    draft: str,
    *,
    is_past: bool,
) -> Iterator[ContextSection]:
    sizes, off = dict(built.parts), frozenset() if is_past else read_off(built)
    # What is switched off is shown in its place.
    sent, built = built, built.usual or built
    can_switch = not is_past and sent.view is not None
    yield from _make_held_sections(built, sizes)
    if offered := dict(built.parts).get("tools"):
        yield ContextSection(
            *("tools", TITLES["tools"], 0 if "tools" in off else offered),
            tools=tuple(map(SentTool.from_definition, built.tools)),
            can_switch=can_switch,
            off=off,
        )
    if added := sizes.get("provider"):
        text = _("The provider counts this many tokens more than what is sent.")
        yield ContextSection("provider", TITLES["provider"], added, text=text)
    for section in built.context.sections:
        messages = tuple(_find_stored(conversation, section, draft, built.refs))
        messages = _complete_messages(conversation, messages, built.refs)
        if can_switch and section.kind in ("window", "pinned"):
            messages = tuple(
                replace(m, can_switch=True, is_off=f"message-{m.seq}" in off)
                for m in messages
            )
        versions_sent = built.refs["summaries"] if section.kind == "summaries" else []
        summaries = conversation.summaries.filter(version__in=versions_sent)
        # What has only left the window is no part of the request.
        summaries = summaries.exclude(text="", model="")
        # As it is sent, or the section's own text while it is off.
        quoted = sent.context.get_section(section.kind) or section.messages
        # What is quoted in one message is shown as it is quoted, too.
        is_whole = messages and section.kind not in QUOTED
        title = TITLES[section.kind]
        if section.kind == "newest" and is_past:
            title = capfirst(_("newest message"))
        yield ContextSection(
            kind=section.kind,
            title=title,
            tokens=sizes.get(section.kind, 0),
            messages=messages,
            summaries=tuple(summaries.order_by("first_seq")) if versions_sent else (),
            rules=_list_statements(conversation, built, section.kind, off),
            can_switch=can_switch and section.kind in SWITCHED,
            off=off,
            text="" if is_whole else str(quoted[0].content),
        )


def _make_held_sections(
    built: context.RequestContext, sizes: Mapping[str, int]
) -> Iterator[ContextSection]:
    if built.read_held:
        held = built.read_held()
        yield ContextSection(
            "held",
            TITLES["held"],
            sizes.get("held", 0),
            tuple(map(SeenMessage.from_message, held.messages)),
            tools=tuple(map(SentTool.from_definition, held.tools)),
            held=held,
        )
    if hidden := sizes.get("only_there"):
        text = _("Reasoning, or a summary, that the provider holds in encrypted form.")
        yield ContextSection("only_there", TITLES["only_there"], hidden, text=text)


def _list_statements(
    conversation: Conversation,
    built: context.RequestContext,
    kind: str,
    off: frozenset[str],
) -> tuple[SentRule, ...]:
    if kind not in ("rules", "facts"):
        return ()
    is_rules = kind == "rules"
    found = list_sent_rules(conversation, built) if is_rules else list_sent_facts(built)
    return tuple(replace(each, is_off=each.key in off) for each in found)


def _find_stored(
    conversation: Conversation, section: Section, draft: str, refs: Mapping[str, Any]
) -> Iterator[SeenMessage]:
    """Yield the messages of a section that are in the transcript.

    Summaries and a draft are not. Of recalled ones the model may see only a part; here
    they are whole.
    """
    numbered = [message for message in section.messages if message.id]
    if section.kind in QUOTED:
        quoted = refs["pinned"]
        if section.kind == "recalled":
            quoted = to_ranges(refs["recalled"])
        rows = conversation.messages.filter(in_ranges(quoted)).order_by("seq")
        numbered = [row.to_langchain() for row in rows]
    for message in numbered:
        if not draft or int(message.id) < conversation.next_seq:
            yield SeenMessage.from_message(message)


def _complete_messages(
    conversation: Conversation,
    messages: tuple[SeenMessage, ...],
    refs: Mapping[str, Any],
) -> tuple[SeenMessage, ...]:
    """Return the messages with their images, and how much was sent of those in part."""
    in_part = {each.seq for each in messages if each.is_of_tools or each.is_in_part}
    attached = {each.seq for each in messages if has_attachments(each.text)}
    if not in_part | attached:
        return messages
    rows = conversation.messages.filter(seq__in=in_part | attached)
    rows = rows.annotate(chars=Length("text"))
    stored = {row.seq: row for row in rows.only("seq", "tool_calls", "attachments")}
    sent = {(seq, place): tokens for seq, place, tokens in refs.get("images", ())}

    def complete(message: SeenMessage, row: Message) -> SeenMessage:
        whole = row.chars + sum(len(dump_arguments(call)) for call in row.tool_calls)
        images = tuple(
            SeenImage(
                file["name"],
                *(file["image"]["width"], file["image"]["height"]),
                sent.get((row.seq, place)),
                reverse("attachment-image", args=[conversation.uuid, row.seq, place]),
            )
            for place, file in enumerate(row.attachments)
            if file.get("image") and row.seq in attached
        )
        is_cut = row.seq in in_part and message.sent_chars < whole
        shortened = (message.sent_chars, whole) if is_cut else None
        return replace(message, images=images, shortened=shortened)

    return tuple(
        complete(each, stored[each.seq]) if each.seq in stored else each
        for each in messages
    )


def _list_unsent(
    sections: Iterable[ContextSection],
    draft: Sequence[Attachment],
    refs: Mapping[str, Any],
) -> tuple[str, ...]:
    """Return the names of images of which the request has no more than that.

    Those that a search brought back, and summaries, have the name at most.
    """
    shown = (m for part in sections if part.kind != "recalled" for m in part.messages)
    names = [image.name for m in shown for image in m.images if not image.is_sent]
    if not any(seq for seq, *_rest in refs.get("images", ()) if seq == refs["newest"]):
        names += [each.name for each in draft if each.image]
    return tuple(names)
