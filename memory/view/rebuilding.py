"""Sent requests, rebuilt from their references and proved by their hash."""

import json
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from django.db.models import Case, F, QuerySet, TextField, When
from django.db.models.functions import Left
from langchain_core.messages import BaseMessage, HumanMessage

from memory import prompts, versions
from memory.context import (
    RequestContext,
    build_request_context,
    estimate_overhead,
    make_request_context,
    prepare_newest,
)
from memory.engine.compose import (
    Context,
    Section,
    compose_context,
    digest_body,
    quote_rule,
)
from memory.engine.search import excerpts
from memory.engine.tokens import Parts, count_parts, count_text, share_out
from memory.engine.tools import fitting, response_items
from memory.files import passage_source
from memory.images import image_source
from memory.models import (
    SENT,
    Conversation,
    Message,
    ModelCall,
    Prompt,
    Summary,
    as_langchain,
    replace_columns,
)
from memory.ranges import Ranges, in_ranges, list_noted, to_ranges
from memory.rules import rule_source
from memory.search import recall

from .variation import list_sent_ranges


def rebuild_context(call: ModelCall) -> RequestContext:
    """Return the context of a recorded request, from its references alone.

    The request is for a reply, or for a summary at the end of one.
    """
    return rebuild_contexts([call])[0]


# The keys of references that mark an external request.
EXTERNAL = frozenset({"client"})
# Functions that rebuild external requests, by key, if the app that keeps them is on.
rebuilders: dict[str, Callable[[ModelCall], RequestContext]] = {}
NoteImages = Callable[[Conversation, Sequence[BaseMessage], Any], None]


def rebuild_contexts(calls: Sequence[ModelCall]) -> list[RequestContext]:
    """Return the contexts of recorded requests of one conversation.

    The sources of requests composed here are read once for all of them.
    """
    return _rebuild_each(calls, _send_again, image_source.note_again)


def recompose_contexts(calls: Sequence[ModelCall]) -> list[RequestContext]:
    """Return the contexts and parts for counting: without what was sent for them."""
    return _rebuild_each(calls, _recount, image_source.note_sizes)


def _recount(call: ModelCall, context: Context, found: "_Sources") -> RequestContext:
    parts = list_parts(call, context, count_text(_find_tools(call.refs, found.texts)))
    tokens = call.tokens_estimated
    return RequestContext(context, call.refs, [], [], call.sha256, tokens, parts)


def _find_tools(refs: Mapping[str, Any], texts: Mapping[str, str]) -> str:
    return texts.get(refs.get("tools_text") or refs.get("tools_sha256", ""), "")


def _rebuild_each(
    calls: Sequence[ModelCall],
    rebuild: Callable[[ModelCall, Context, "_Sources"], RequestContext],
    note: NoteImages,
) -> list[RequestContext]:
    """Rebuild external requests as their app does, and the others with `rebuild`."""
    others = {
        call.pk: rebuild_external(call)
        for call in calls
        for name, rebuild_external in rebuilders.items()
        if name in call.refs
    }
    composed = [call for call in calls if call.pk not in others]
    found = _read_sources(composed) if composed else None
    return [
        others[call.pk]
        if found is None or call.pk in others
        else rebuild(call, _recompose(call, found, note), found)
        for call in calls
    ]


@dataclass(frozen=True, slots=True)
class _Sources:
    """The sources of requests.

    These are texts by their hashes, summaries, and the columns SENT of messages by
    their numbers, which rise.
    """

    texts: dict[str, str]
    summaries: list[Summary]
    rows: dict[int, tuple[Any, ...]]
    seqs: list[int]

    def within(self, ranges: Ranges) -> list[tuple[Any, ...]]:
        """Return the rows of these numbers, in their order."""
        picked: set[int] = set()
        for first, last in ranges:
            start, end = bisect_left(self.seqs, first), bisect_right(self.seqs, last)
            picked.update(self.seqs[start:end])
        return [self.rows[seq] for seq in sorted(picked)]

    def edited(self, refs: dict[str, Any]) -> Self:
        """Return the sources with messages in the words that a request had instead."""
        if not refs.get("edited"):
            return self
        rows = dict(self.rows)
        for seq, sha256 in refs["edited"]:
            said = self.texts.get(sha256, "")
            rows[seq] = replace_columns(rows[seq], text=said, sent_text="")
        return replace(self, rows=rows)

    def quoted(self, refs: dict[str, Any]) -> list[Summary]:
        sent = {*refs["summaries"]}
        return [row for row in self.summaries if row.version in sent]

    def messages(self, ranges: Ranges) -> list[BaseMessage]:
        return [as_langchain(*row) for row in self.within(ranges)]

    def whole(self, seqs: Iterable[int]) -> list[BaseMessage]:
        """Return the messages as read_whole() finds them."""
        text = SENT.index("text")
        rows = (
            replace_columns(row, text=row[text][: recall.MAX_CHARS], sent_text="")
            for row in self.within(to_ranges(seqs))
        )
        return [as_langchain(*row) for row in rows]


def compose_refs(
    conversation: Conversation,
    refs: dict[str, Any],
    *,
    model: str,
    texts: Mapping[str, str],
    newest: Message | None = None,
    tool_tokens: int = 0,
) -> RequestContext:
    """Return the request that these references describe.

    `texts` that they name by their hash, and the `newest` message, may not be stored
    yet.
    """
    call = ModelCall(conversation=conversation, refs=refs, model=model)
    found = _read_sources([call])
    found.texts.update(texts)
    if newest and newest.seq not in found.rows:
        found.rows[newest.seq] = tuple(getattr(newest, name) for name in SENT)
        found.seqs.append(newest.seq)
    context = _recompose(call, found, image_source.note_again)
    return _send_again(call, context, found, tool_tokens)


def _read_sources(calls: Sequence[ModelCall]) -> _Sources:
    conversation = calls[0].conversation
    named: set[str] = set()
    used, noted, stated = set[int](), set[int](), set[int]()
    ranges: Ranges = []
    for call in calls:
        refs = call.refs
        used.update(refs["summaries"])
        named.update(prompts.named_in(refs))
        noted.update(refs.get("recalled", ()))
        stated.update(rule[0] for rule in refs.get("rules", ()))
        ranges += [*refs["pinned"], *refs["window"], *refs.get("steps", ())]
        if newest := refs.get("newest"):
            ranges.append([newest, newest])
    # A text that is gone is "", so the hash of the whole differs.
    found = Prompt.objects.in_bulk(named)
    rows = conversation.messages.filter(
        in_ranges(
            {(first, last) for first, last in [*ranges, *to_ranges(noted | stated)]}
        )
    )
    # Of messages that are only quoted, only the part that a search sees is read.
    text = Case(
        When(seq__in=noted - stated, then=Left("text", recall.MAX_CHARS)),
        default=F("text"),
        output_field=TextField(),
    )
    values = rows.order_by("seq").annotate(read=text) if noted else rows.order_by("seq")
    names = ["read" if noted and name == "text" else name for name in SENT]
    by_seq = {row[0]: row for row in values.values_list(*names)}
    blocks = conversation.summaries.filter(version__in=used)
    return _Sources(
        {sha256: row.text for sha256, row in found.items()},
        list(blocks.order_by("first_seq")),
        by_seq,
        [*by_seq],
    )


def _recompose(call: ModelCall, found: _Sources, note: NoteImages) -> Context:
    """Return the context of a request; `note` marks the images sent with it."""
    conversation, refs, texts = call.conversation, call.refs, found.texts
    sent = found.edited(refs)
    newest = sent.messages([[refs["newest"]] * 2]) if refs.get("newest") else []
    recalled = excerpts.restore_excerpts(
        found.whole(refs.get("recalled", ())),
        spans=refs.get("excerpts", ()),
        newest=dict(refs.get("replaced", ())),
        until=dict(refs.get("until", ())),
        lines={seq for (seq,) in refs.get("lines", ())},
    )
    cuts: dict[int, dict[str, int]] = {}
    for seq, part, chars in refs.get("shortened", ()):
        cuts.setdefault(seq, {})[part] = chars
    rules = refs.get("rules", ())
    said = {seq: found.rows[seq][2:4] for seq, *_ in rules if seq in found.rows}
    pinned, window = sent.messages(refs["pinned"]), sent.messages(refs["window"])
    if images := refs.get("images"):
        seen = [*pinned, *window, *newest]
        note(conversation, seen, images)
    context = compose_context(
        system_prompt=texts.get(refs["system"], ""),
        fence=texts.get(refs["fence"], ""),
        blocks=[versions.to_block(row) for row in found.quoted(refs)],
        pinned=pinned,
        facts=list(rule_source.restore_facts(prompts.facts_in(refs), texts)),
        rules=list(rule_source.restore_rules(rules, said, texts)),
        window=fitting.prepare_messages(window, clip=refs.get("clipped", 0), cuts=cuts),
        recalled=[
            *recalled,
            *passage_source.restore_passages(conversation, refs.get("files", ())),
        ],
        newest=prepare_newest(newest[0] if newest else None),
        steps=fitting.prepare_messages(sent.messages(refs.get("steps", [])), cuts=cuts),
    )
    if "instruction" in refs:
        asked = HumanMessage(f"{texts.get(refs['instruction'], '')}\n{refs['asked']}")
        context = Context((*context.sections, Section("newest", (asked,))))
    return context


def _send_again(
    call: ModelCall, context: Context, found: _Sources, tool_tokens: int = 0
) -> RequestContext:
    conversation, refs, texts = call.conversation, call.refs, found.texts
    extra = estimate_overhead(conversation)
    built = make_request_context(
        conversation, context, refs, call.model, extra, tool_tokens
    )
    named = prompts.named_in(refs)
    told = {name: texts[name] for name in named if name in texts}
    tools = _find_tools(refs, texts)
    built = replace(built, texts=told, tools=read_definitions(tools))
    if call.pk:
        parts = list_parts(call, context, count_text(tools))
        built = replace(built, parts=parts, tokens=call.tokens_estimated)
    return replace(built, summaries=found.quoted(refs))


def read_definitions(text: str) -> list[Any]:
    """Return the definitions of tools that were sent.

    An imported file can have anything in their place.
    """
    try:
        found = json.loads(text or "[]")
    except (ValueError, RecursionError):
        return []
    return found if isinstance(found, list) else [found]


def list_parts(call: ModelCall, context: Context, tool_tokens: int = 0) -> Parts:
    """Return the parts of a recorded request, as counted when it was sent.

    Older requests have only the sum.
    """
    known = tuple((name, count) for name, count in call.parts)
    if known and sum(count for _, count in known) == call.tokens_estimated:
        return known
    parts = count_parts(context.sections, tools=tool_tokens)
    return share_out(parts, call.tokens_estimated)


def select_unknown(calls: QuerySet[ModelCall]) -> QuerySet[ModelCall]:
    """Return the requests that only an app that is off could rebuild."""
    off = EXTERNAL - rebuilders.keys()
    return calls.filter(refs__has_any_keys=[*off]) if off else calls.none()


def select_known(calls: QuerySet[ModelCall]) -> QuerySet[ModelCall]:
    """Return the requests that can be rebuilt."""
    off = EXTERNAL - rebuilders.keys()
    return calls.exclude(refs__has_any_keys=[*off]) if off else calls


def verify_context(call: ModelCall) -> bool:
    """Return whether the rebuilt context is what was sent, byte for byte."""
    return is_sent(call, rebuild_context(call))


def is_sent(call: ModelCall, built: RequestContext) -> bool:
    """Return whether a rebuilt request has the hash of its call, and of its body."""
    if built.sha256 != call.sha256 or not call.body_sha256:
        return built.sha256 == call.sha256
    return digest_body(make_sent_body(call, built)) == call.body_sha256


def make_sent_body(call: ModelCall, built: RequestContext) -> dict[str, Any]:
    """Return the body of a recorded request that was composed here."""
    body = {"model": call.model, **call.body_fields, "messages": built.wire}
    body |= {"tools": built.tools} if built.tools else {}
    is_converted = response_items.has_items(call.body_fields)
    return response_items.convert_body(body) if is_converted else body


def find_body_hash(call: ModelCall) -> str:
    """Return the SHA-256 of the body that left, or "" if it is not known."""
    return call.sha256 if EXTERNAL & call.refs.keys() else call.body_sha256


def is_erased(call: ModelCall) -> bool:
    """Return whether the user has since erased a part of this request.

    That is: deleted a message that was sent with it or that a summary in it covered, or
    erased a fact in it.
    """
    refs = call.refs
    facts = {name for _place, name in prompts.facts_in(refs)}
    if facts and Prompt.objects.filter(pk__in=facts).count() < len(facts):
        return True
    stated = {seq for seq, *_ in refs.get("rules", ())}
    quoted = to_ranges({*list_noted(refs), *stated})
    ranges = [*list_sent_ranges(refs), *refs.get("held", ()), *quoted]
    rows = call.conversation.messages.exclude(deleted_at=None)
    if any(rows.filter(seq__range=(first, last)).exists() for first, last in ranges):
        return True
    sent = call.conversation.summaries.filter(version__in=refs["summaries"])
    return sent.filter(status=Summary.Status.ERASED).exists()


def missing_rules(conversation: Conversation) -> list[int]:
    """Return the messages of confirmed rules that the next request lacks.

    A rule is lacking if it is not in the request word for word: there must be none.
    """
    standing = rule_source.find_source("rules").list_standing(conversation)
    confirmed = [rule for rule in standing if rule.is_confirmed]
    if not confirmed:
        return []
    sent = "\n".join(
        message.text for message in build_request_context(conversation).messages
    )
    return [each.block.seq for each in confirmed if quote_rule(each.block) not in sent]
