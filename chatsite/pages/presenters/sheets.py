"""The right pane as a stack of sheets: heights, glances, and one sentence for all.

A glance is what a sheet shows while it is closed.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import unescape
from typing import TYPE_CHECKING

from django.utils.html import strip_tags
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from chatsite.features.tools.registry import label_of
from chatsite.languages import group_thousands

if TYPE_CHECKING:
    from memory.view.places import PlaceCounts

    from .context_pane import ContextSection, SeenMessage

# The stack is so high when all of it fits at 1 rem for so many tokens. More is drawn
# smaller, so that the stack stays as high.
STACK_REM = 24
TOKENS_PER_REM = 16
# What is free is nearly all of a large window: drawn no higher than this, and torn.
FREE_REM = 4
# The kinds of sheets in the order of the payload, with a word for those that are empty.
WORDS = {
    "held": gettext_lazy("Held by the provider, rebuilt from what was sent"),
    "only_there": gettext_lazy("Readable only by the provider"),
    "tools": gettext_lazy("Tools"),
    "provider": gettext_lazy("Added by the provider"),
    "system": gettext_lazy("Instructions"),
    "summaries": capfirst(gettext_lazy("summaries")),
    "pinned": gettext_lazy("Pinned"),
    "facts": capfirst(gettext_lazy("facts")),
    "rules": gettext_lazy("Rules"),
    "window": gettext_lazy("Recent"),
    "recalled": capfirst(gettext_lazy("recalled")),
    "newest": gettext_lazy("Next message"),
}
# They are no sheet while they are empty.
OPTIONAL = ("held", "only_there", "tools", "provider", "facts")
# A closed sheet shows the beginning of so many texts, and so much of each.
GLANCES = 12
# Of many messages the beginning and, longer, the end.
FIRST_GLANCES, LAST_GLANCES = 2, 6
GLANCE_CHARS = {"summaries": 600}
MESSAGE_CHARS = 120
MARKUP = re.compile(r"\*\*|__|`|^#+ ", re.MULTILINE)
# What a result says of the messages that it quotes.
INTRODUCTION = re.compile(r'\A[^<]*(?=<\w+ n=")')
# The roles of results.
QUOTED = ("tool", "quote")


@dataclass(frozen=True, slots=True)
class Sheet:
    """One sheet of the stack.

    `height` is a length for SVG, to scale with the others; an empty sheet has no
    section and no height.
    """

    kind: str  # the sections' kinds, then free
    word: str
    tokens: int = 0
    height: str = "0rem"
    section: "ContextSection | None" = None
    is_torn: bool = False  # it is drawn lower than its tokens


@dataclass(frozen=True, slots=True)
class Glance:
    """The beginning of a text of a closed sheet, and which messages it is of."""

    text: str
    label: str = ""
    first: int | None = None
    last: int | None = None


def make_sheets(
    sections: Sequence["ContextSection"], free: int, usual: int = 0
) -> tuple[Sheet, ...]:
    """Return the sections, empty ones among them, and below all what is `free`.

    `usual`: the tokens with what is switched off, so that the rest stays as high.
    """
    used = max(usual, sum(section.tokens for section in sections))
    per_rem = max(TOKENS_PER_REM, used / STACK_REM)
    filled = {section.kind: section for section in sections}
    # What a reply has called so far comes last.
    kinds = [kind for kind in WORDS if kind in filled or kind not in OPTIONAL]
    kinds += [kind for kind in filled if kind not in WORDS]
    sheets = [_make_sheet(kind, filled.get(kind), per_rem) for kind in kinds]
    height = min(free / per_rem, FREE_REM)
    is_torn = free / per_rem > FREE_REM
    below = Sheet("free", _("Free"), free, _length(height), is_torn=is_torn)
    return (*sheets, below)


def _make_sheet(kind: str, section: "ContextSection | None", per_rem: float) -> Sheet:
    word = str(WORDS.get(kind, ""))
    if section is None:
        return Sheet(kind, word)
    height = _length(section.tokens / per_rem)
    return Sheet(kind, word, section.tokens, height, section)


def _length(rem: float) -> str:
    return f"{rem:.2f}rem"


def list_glances(section: "ContextSection") -> list[Glance]:
    """Return the texts that a closed sheet shows.

    Of many messages, these are the first and the last ones and how many are between.
    """
    found = list(_glances_of(section))
    between = len(found) - FIRST_GLANCES - LAST_GLANCES
    if section.kind != "window" or between < 1:
        return found[:GLANCES]
    words = ngettext("%(n)s more", "%(n)s more", between) % {"n": between}
    skipped = Glance(f"… {words}")
    return [*found[:FIRST_GLANCES], skipped, *found[-LAST_GLANCES:]]


def _glances_of(section: "ContextSection") -> Iterator[Glance]:
    chars = GLANCE_CHARS.get(section.kind, MESSAGE_CHARS)
    for summary in section.summaries:
        label = f"v{summary.version}"
        if summary.is_by_hand:
            label += f" · {_('by hand')}"
        words = MARKUP.sub("", summary.text[:chars])
        text = "\n".join(filter(None, words.splitlines()))
        yield Glance(text, label, summary.first_seq, summary.last_seq)
    for rule in section.rules:
        yield Glance(rule.text[:chars])
    for tool in section.tools:
        yield Glance(tool.description[:chars], tool.label)
    for message in section.messages:
        text = _glance_at(message)[:chars]
        yield Glance(text, f"#{message.seq}", message.seq, message.seq)
    passages = section.passages
    for passage in passages:
        yield Glance(passage.text[:chars], passage.name)
    shown = (section.summaries, section.rules, section.tools, section.messages)
    if not (any(shown) or passages):
        yield Glance(section.in_words[: 2 * MESSAGE_CHARS])


def _glance_at(message: "SeenMessage") -> str:
    """Return a message's words for readers, or the labels of the tools it calls."""
    if message.role in QUOTED:
        # Such a text has messages of this conversation between tags, after what it says
        # of them to the model.
        text = INTRODUCTION.sub("", message.text)[: 4 * MESSAGE_CHARS]
        return unescape(strip_tags(text))
    called = (name for name, _arguments in message.calls)
    return message.in_words or ", ".join(map(label_of, called))


def describe_sheets(sections: Sequence["ContextSection"]) -> str:
    """Return what the model reads, as in "5 summaries and the last 4 messages".

    "" = nothing. The instructions are always there, and named only if nothing else is.
    """
    describers = (_describe_sheet, _count_passages)
    words = (describe(each) for each in sections for describe in describers)
    named = [*filter(None, words)]
    if not named:
        return _("its instructions") if sections else ""
    return _join_words(named)


def _join_words(named: Sequence[str]) -> str:
    *rest, last = named
    if not rest:
        return last
    return _("%(list)s and %(last)s") % {"list": _(", ").join(rest), "last": last}


def describe_read_messages(
    counts: "PlaceCounts",
    sections: Sequence["ContextSection"],
    *,
    reply: int | None,
    is_cut: bool,
) -> str:
    """Return the account of a request in a sentence.

    As in "The model reads 24 of your 151 messages and two summaries." The numbers are
    those of its file of evidence. `is_cut`: the provider read only a part.
    """
    is_past = reply is not None
    named = [_count_read(counts, is_past=is_past)] if sum(counts.values()) else []
    for section in sections:
        is_named = section.kind == "held"
        is_named |= section.kind in ("summaries", "recalled") and section.count > 0
        # A stored newest message is counted with the others.
        is_named |= section.kind == "newest" and not section.messages
        if is_named:
            named.append(_describe_sheet(section))
    what = _join_words(named) if named else describe_sheets(sections)
    if not what:
        return _("The model reads nothing yet.")
    if not is_past:
        return _("The model reads %(what)s.") % {"what": what}
    words = _("For reply #%(seq)s the model read %(what)s.")
    if is_cut:
        words = _("For reply #%(seq)s this was sent: %(what)s.")
    return words % {"seq": reply, "what": what}


def _count_read(counts: "PlaceCounts", *, is_past: bool) -> str:
    read, total = counts.read, sum(counts.values())
    if is_past and read == total:
        words = ngettext(
            "the only message before it", "all %(n)s messages before it", total
        )
    elif is_past:
        words = ngettext(
            "%(read)s of the %(n)s message before it",
            "%(read)s of the %(n)s messages before it",
            total,
        )
    elif read == total:
        words = ngettext("your only message", "all %(n)s of your messages", total)
    else:
        words = ngettext(
            "%(read)s of your %(n)s message", "%(read)s of your %(n)s messages", total
        )
    return words % {"read": group_thousands(read), "n": group_thousands(total)}


def _count_passages(section: "ContextSection") -> str:
    n = 0 if section.is_off else len(section.passages)
    words = ngettext("%(n)s passage of a file", "%(n)s passages of files", n)
    return words % {"n": n} if n else ""


def _describe_sheet(section: "ContextSection") -> str:
    """Return the words for one section; "" for the instructions."""
    if section.kind == "newest":
        return _("the newest message") if section.messages else _("your next message")
    n = section.count
    if not n and section.kind != "steps":
        return ""
    words = {
        "tools": ngettext("%(n)s tool", "%(n)s tools", n),
        "summaries": ngettext("%(n)s summary", "%(n)s summaries", n),
        "pinned": ngettext("%(n)s pinned message", "%(n)s pinned messages", n),
        "facts": ngettext("%(n)s fact about the user", "%(n)s facts about the user", n),
        "rules": ngettext("%(n)s rule", "%(n)s rules", n),
        "recalled": ngettext("%(n)s recalled message", "%(n)s recalled messages", n),
        "steps": _("the tool calls so far"),
        "held": ngettext(
            "%(n)s message that the provider holds",
            "%(n)s messages that the provider holds",
            len(section.messages),
        ),
        "window": ngettext("the last message", "the last %(n)s messages", n),
    }
    return words.get(section.kind, "") % {"n": n}
