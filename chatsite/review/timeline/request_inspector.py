"""What was sent for one reply, rebuilt from the references that were kept, part by part
with where each comes from; and whether it is proved.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from django.utils.translation import gettext as _

from chatsite.pages.presenters.context_pane import TITLES
from chatsite.turns.models import Turn
from chatsite.turns.requests import reply_call
from memory import context
from memory.engine import excerpts
from memory.engine.compose import Section
from memory.engine.tokens import count_text
from memory.integrity import signatures
from memory.models import Conversation, Message, ModelCall, Summary
from memory.ranges import to_ranges, within

from ..rights import Rights
from .links import timeline_url

Purpose = ModelCall.Purpose
FENCED = ("summaries", "pinned", "recalled")


@dataclass(frozen=True, slots=True)
class Item:
    """One message or summary of a part."""

    name: str
    tokens: int
    text: str
    url: str = ""
    role: str = ""
    # Whether the row is as it was written; None: it is no row.
    holds: bool | None = None


@dataclass(frozen=True, slots=True)
class Part:
    kind: str
    title: str
    tokens: int
    items: list[Item]
    # What several were put into one message as, word for word; "": they stand alone.
    whole: str = ""


@dataclass(frozen=True, slots=True)
class Sent:
    call: ModelCall
    # matches, differs, erased or broken
    state: str
    parts: list[Part] = field(default_factory=list)
    tokens: int = 0
    sha256: str = ""
    wire: str = ""
    refs: str = ""

    @property
    def drift(self) -> str:
        """How far the estimate was from what the provider reported."""
        reported = self.call.tokens_input
        if not reported:
            return ""
        return f"{(self.call.tokens_estimated - reported) / reported:+.0%}"

    @property
    def fresh(self) -> int | None:
        """Tokens that did not come from the provider's cache."""
        call = self.call
        if call.tokens_input is None or call.tokens_cached is None:
            return None
        return call.tokens_input - call.tokens_cached


def call_of(conversation: Conversation, seq: int) -> ModelCall | None:
    """The request that the reply with this number came from, or was to come from."""
    call = reply_call(conversation, seq)
    if call is None:
        turns = Turn.objects.filter(conversation=conversation, reply_seq=seq)
        turn = turns.select_related("call").exclude(call=None).last()
        call = turn.call if turn else None
    return call


def latest_reply(conversation: Conversation) -> int | None:
    rows = conversation.messages.filter(role=Message.Role.ASSISTANT)
    return rows.order_by("-seq").values_list("seq", flat=True).first()


def build(conversation: Conversation, call: ModelCall, rights: Rights) -> Sent:
    call.conversation = conversation
    try:
        built = context.rebuild(call)
        same = built.sha256 == call.sha256
        erased = not same and context.is_erased(call)
        parts = list(_Parts(conversation, built, rights))
    except (LookupError, TypeError, ValueError, AttributeError):
        return Sent(call, "broken", refs=_json(call.refs) if rights.content else "")
    return Sent(
        call=call,
        state="matches" if same else "erased" if erased else "differs",
        parts=parts,
        tokens=built.tokens,
        sha256=built.sha256,
        wire=_json(built.wire) if rights.content else "",
        refs=_json(call.refs) if rights.content else "",
    )


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


class _Parts:
    """The parts of a rebuilt context, each with its rows."""

    def __init__(
        self, conversation: Conversation, built: context.Built, rights: Rights
    ) -> None:
        self.conversation, self.built, self.rights = conversation, built, rights
        self.count_tokens = context.counter(conversation)
        self.messages = self._messages()
        versions = conversation.summaries.filter(version__in=built.refs["summaries"])
        self.summaries = list(versions.order_by("first_seq"))

    def __iter__(self) -> Iterator[Part]:
        for section in self.built.context.sections:
            is_fenced = section.kind in FENCED
            text = str(section.messages[0].content) if is_fenced else ""
            yield Part(
                kind=section.kind,
                title=self._title(section.kind),
                tokens=self.count_tokens(section.messages),
                items=list(self._items(section)),
                whole=text if self.rights.content else "",
            )

    def _title(self, kind: str) -> str:
        return _("The message that it answers") if kind == "newest" else TITLES[kind]

    def _messages(self) -> Mapping[int, Message]:
        refs = self.built.refs
        single = [*refs["recalled"], *([refs["newest"]] if refs["newest"] else [])]
        ranges = [*refs["pinned"], *refs["window"], *to_ranges(single)]
        rows = self.conversation.messages.filter(within(ranges))
        return {row.seq: row for row in rows}

    def _items(self, section: Section) -> Iterator[Item]:
        refs = self.built.refs
        if section.kind == "system":
            text = str(section.messages[0].content)
            tokens = self.count_tokens(section.messages)
            yield Item(refs["system"][:12], tokens, self.rights.words(text))
        elif section.kind == "summaries":
            yield from map(self._summary, self.summaries)
        elif section.kind == "pinned":
            yield from (
                self._message(row)
                for seq, row in sorted(self.messages.items())
                if any(first <= seq <= last for first, last in refs["pinned"])
            )
        elif section.kind == "recalled":
            yield from map(self._recalled, sorted(refs["recalled"]))
        else:
            for message in section.messages:
                yield self._message(self.messages[int(message.id)])

    def _summary(self, row: Summary) -> Item:
        span = {"first": row.first_seq, "last": row.last_seq, "version": row.version}
        return Item(
            name=_("v%(version)s of #%(first)s–#%(last)s") % span,
            tokens=count_text(row.text),
            text=self.rights.words(row.text),
            url=timeline_url(self.conversation.pk, v=row.version),
            holds=signatures.holds(row),
        )

    def _message(self, row: Message, text: str | None = None) -> Item:
        shown = row.text if text is None else text
        part = "" if text is None else " · " + _("an excerpt")
        return Item(
            name=f"#{row.seq}{part}",
            tokens=self.count_tokens([row.to_langchain()])
            if text is None
            else count_text(text),
            text=self.rights.words(shown),
            url=timeline_url(self.conversation.pk, tab="transcript", seq=row.seq),
            role=row.get_role_display(),
            holds=signatures.holds(row),
        )

    def _recalled(self, seq: int) -> Item:
        spans = {n: (a, b) for n, a, b in self.built.refs.get("excerpts", ())}
        row = self.messages[seq]
        if seq not in spans:
            return self._message(row)
        cut = excerpts.cut(row.to_langchain(), spans[seq])
        return self._message(row, str(cut.text))
