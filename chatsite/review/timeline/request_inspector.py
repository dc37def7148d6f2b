"""The request for one reply, rebuilt from stored references, and whether it is proved.

Each part says where it comes from.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from chatsite.pages.presenters.context_pane import dump_arguments
from chatsite.pages.presenters.gauge import TITLES
from chatsite.pages.presenters.rules import SentTool
from chatsite.turns.models import Turn
from chatsite.turns.requests import reply_call
from memory import context, prompts
from memory.engine.compose import RuleBlock, Section
from memory.engine.search import excerpts
from memory.engine.tokens import count_text
from memory.images.image_source import without_bytes
from memory.integrity import signatures
from memory.models import Conversation, Message, ModelCall, Summary
from memory.ranges import in_ranges, is_within, list_noted, to_ranges
from memory.rules.rule_source import rebuild_rules, restore_facts
from memory.view import rebuilding

from ..pages import timeline_url
from ..rights import Rights

FENCED = ("summaries", "pinned", "facts", "rules", "recalled")


# One message or summary of a part: name, tokens, text, and for a row also its url, role
# and whether it still is as it was written.
Item = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RequestPart:
    kind: str
    title: str
    tokens: int
    items: list[Item]
    # The text of the one message that several were sent in; "": they were sent alone.
    whole: str = ""


@dataclass(frozen=True, slots=True)
class InspectedRequest:
    call: ModelCall
    # matches, differs, erased or broken
    state: str
    parts: list[RequestPart] = field(default_factory=list)
    sha256: str = ""
    messages_json: str = ""
    refs: str = ""

    @property
    def fresh(self) -> int | None:
        """Tokens that did not come from the provider's cache."""
        call = self.call
        if call.tokens_input is None or call.tokens_cached is None:
            return None
        return call.tokens_input - call.tokens_cached


def call_of(conversation: Conversation, seq: int) -> ModelCall | None:
    """Return the request that the reply with this number came, or was to come, from."""
    call = reply_call(conversation, seq)
    if call is None:
        turns = Turn.objects.filter(conversation=conversation, reply_seq=seq)
        calls = ModelCall.objects.filter(pk__in=turns.values("call"))
        call = rebuilding.select_known(calls).order_by("pk").last()
    return call


def inspect_reply(
    conversation: Conversation, seq: int, rights: Rights
) -> InspectedRequest | None:
    call = call_of(conversation, seq)
    return build_sent(conversation, call, rights) if call else None


def build_sent(
    conversation: Conversation, call: ModelCall, rights: Rights
) -> InspectedRequest:
    call.conversation = conversation
    refs = _indent_json(call.refs) if rights.content else ""
    try:
        built = rebuilding.rebuild_context(call)
        same = rebuilding.is_sent(call, built)
        erased = not same and rebuilding.is_erased(call)
        parts = list(_Parts(conversation, built, rights))
    except (LookupError, TypeError, ValueError, AttributeError):
        return InspectedRequest(call, "broken", refs=refs)
    return InspectedRequest(
        call=call,
        state="matches" if same else "erased" if erased else "differs",
        parts=parts,
        sha256=built.sha256,
        messages_json=_indent_json(without_bytes(built.wire)) if rights.content else "",
        refs=refs,
    )


def _indent_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


class _Parts:
    """The parts of a rebuilt context, each with its rows."""

    def __init__(
        self, conversation: Conversation, built: context.RequestContext, rights: Rights
    ) -> None:
        self.conversation, self.built, self.rights = conversation, built, rights
        refs = built.refs
        single = [*list_noted(refs), *([refs["newest"]] if refs["newest"] else [])]
        ranges = [*refs["pinned"], *refs["window"], *to_ranges(single)]
        ranges += refs.get("steps", [])
        rows = conversation.messages.filter(in_ranges(ranges))
        self.messages = {row.seq: row for row in rows}
        versions = conversation.summaries.filter(version__in=refs["summaries"])
        self.summaries = list(versions.order_by("first_seq"))

    def __iter__(self) -> Iterator[RequestPart]:
        sizes = dict(self.built.parts)
        tools = map(self._tool, self.built.tools)
        others = dict.fromkeys(("held", "only_there"), ())
        for kind, items in {**others, "tools": tools, "provider": ()}.items():
            if kind in sizes:
                yield RequestPart(kind, TITLES[kind], sizes[kind], list(items))
        for section in self.built.context.sections:
            is_newest = section.kind == "newest"
            title = _("The message that it answers") if is_newest else ""
            is_whole = section.kind in FENCED and self.rights.content
            yield RequestPart(
                kind=section.kind,
                title=title or TITLES[section.kind],
                tokens=sizes.get(section.kind, 0),
                items=list(self._items(section)),
                whole=str(section.messages[0].content) if is_whole else "",
            )

    def _items(self, section: Section) -> Iterable[Item]:
        refs = self.built.refs
        if section.kind == "system":
            text = str(section.messages[0].content)
            return [self._item(refs["system"][:12], text)]
        if section.kind == "summaries":
            return map(self._summary, self.summaries)
        if section.kind == "rules":
            rules = rebuild_rules(self.conversation, refs["rules"], self.built.texts)
            return map(self._rule, rules)
        if section.kind == "facts":
            found = restore_facts(prompts.facts_in(refs), self.built.texts)
            return map(self._rule, found)
        if section.kind == "recalled":
            spans = {n: (a, b) for n, a, b in refs.get("excerpts", ())}
            seqs = sorted(refs["recalled"])
            return [self._message(self.messages[n], spans.get(n)) for n in seqs]
        if section.kind == "pinned":
            seqs = [n for n in sorted(self.messages) if is_within(n, refs["pinned"])]
        else:
            # A message in place of a result that never came has no row.
            seqs = [int(message.id) for message in section.messages if message.id]
        return [self._message(self.messages[n]) for n in seqs]

    def _rule(self, rule: RuleBlock) -> Item:
        name = f"#{rule.seq} · {rule.date}" if rule.seq else rule.date
        return self._item(name, rule.text)

    def _tool(self, definition: Any) -> Item:
        tool = SentTool.from_definition(definition)
        return self._item(tool.label, tool.schema)

    def _item(self, name: str, text: str) -> Item:
        shown = self.rights.show_text(text)
        return {"name": name, "tokens": count_text(text), "text": shown}

    def _summary(self, row: Summary) -> Item:
        span = {"first": row.first_seq, "last": row.last_seq, "version": row.version}
        return {
            **self._item(_("v%(version)s of #%(first)s–#%(last)s") % span, row.text),
            "url": timeline_url(self.conversation.pk, v=row.version),
            "holds": signatures.has_valid_signature(row),
        }

    def _message(self, row: Message, span: tuple[int, int] | None = None) -> Item:
        """`span`: of a message that was recalled in part, from where to where."""
        name, message = f"#{row.seq}", row.to_langchain()
        text = str(message.content)
        calls = [f"{call['name']}({dump_arguments(call)})" for call in row.tool_calls]
        text = "\n".join([text, *calls] if text else calls)
        if span:
            text = str(excerpts.cut_excerpt(message, span).text)
            name = f"{name} · " + _("an excerpt")
        return {
            **self._item(name, text),
            "url": timeline_url(self.conversation.pk, tab="transcript", seq=row.seq),
            "role": row.get_role_display(),
            "holds": signatures.has_valid_signature(row),
        }
