"""Labels of summaries' versions, and the cost of tokens, for lists and pages."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from chatsite.llm import pricing
from memory.engine.summaries.dropped import DroppedCount
from memory.engine.summaries.facts import MAX_FACTS
from memory.models import Summary

TRIGGERS = {
    "tokens": gettext_lazy("tokens"),
    "messages": gettext_lazy("messages"),
    "turns": gettext_lazy("turns"),
    "fraction": gettext_lazy("share of the model's window"),
    "age": gettext_lazy("age"),
    "idle": gettext_lazy("idle time"),
    "topic": gettext_lazy("new words"),
    "important": gettext_lazy("important messages"),
    "summary_tokens": gettext_lazy("tokens of summaries"),
    "room": gettext_lazy("tokens that fit"),
    "manual": gettext_lazy("by hand"),
    "change": gettext_lazy("messages changed"),
    "edit": gettext_lazy("edited by hand"),
    "restore": gettext_lazy("restored"),
}


@admin.display(description=gettext_lazy("trigger"))
def describe_trigger(row: Summary) -> str:
    trigger = row.trigger if isinstance(row.trigger, dict) else {}
    name = str(trigger.get("kind", ""))
    kind = str(TRIGGERS.get(name, name.replace("_", " ")))
    values: dict[str, Any] = {**trigger, "kind": kind}
    if name in ("edit", "restore") and values.get("value"):
        return _("%(kind)s: v%(value)s") % values
    if not values.get("limit"):
        return kind
    values.setdefault("value", None)
    return _("%(kind)s: %(value)s (limit %(limit)s)") % values


@admin.display(description=gettext_lazy("status"))
def name_status(row: Summary) -> str:
    return row.get_status_display()


@admin.display(description=gettext_lazy("messages"))
def format_span(row: Summary) -> str:
    return f"#{row.first_seq}–#{row.last_seq}"


@admin.display(description=gettext_lazy("tokens"))
def format_tokens(row: Summary) -> str:
    both = f"{row.tokens_before:,}\u00a0→\u00a0{row.tokens_after:,}"
    if not row.tokens_before:
        return both
    ratio = f"{row.tokens_after / row.tokens_before:.0%}"
    return _("%(both)s (%(ratio)s)") % {"both": both, "ratio": ratio}


@admin.display(description=gettext_lazy("summarised"))
def count_compacted(row: Summary) -> str:
    """Return how many messages the summary was the first to cover."""
    spans = [(each.first_seq, each.last_seq) for each in row.folded_from.all()]
    before = sum(last - first + 1 for first, last in spans)
    return f"+{max(0, row.last_seq - row.first_seq + 1 - before):,}"


@admin.display(description=gettext_lazy("by"))
def name_author(row: Summary) -> str:
    return row.author.get_username() if row.author else _("automatic")


@admin.display(description=gettext_lazy("flags"))
def list_flags(row: Summary) -> str:
    """Return the doubts about a version; `follows`: if another one ends before it."""
    found = []
    if count := row.unsupported:
        words = ngettext("%(n)s fact unsupported", "%(n)s facts unsupported", count)
        found.append(words % {"n": f"{count}+" if count >= MAX_FACTS else count})
    # Lists do not read the column: it can hold what was said.
    is_unread = "flags" in row.get_deferred_fields()
    noted = {} if is_unread else row.flags
    if lines := noted.get("dropped"):
        found.append(_describe_dropped(lines, noted.get("dropped_from", ())))
    if "unmatched" in noted:
        found.append(_("important messages not looked for"))
    is_first = row.first_seq == 1 or getattr(row, "follows", True)
    if row.status == Summary.Status.ACTIVE and not is_first:
        found.append(_("gap before it"))
    if row.generation > 1:
        found.append(_("generation %(n)s") % {"n": row.generation})
    # Only staff who may read texts see all of them. "{}" has two characters.
    may_read, chars = getattr(row, "may_read", False), getattr(row, "flags_chars", 0)
    is_hidden = is_unread and not may_read and chars > 2
    return ", ".join(found) or (_("hidden") if is_hidden else "–")


def _describe_dropped(listed: Sequence[str], counted: Sequence[str]) -> str:
    """Versions from before the messages were counted have a list that may be cut."""
    counts = [each.count for each in map(DroppedCount.parse_line, counted) if each]
    count = sum(counts) or len(listed)
    words = ngettext("%(n)s thing dropped", "%(n)s things dropped", count)
    return words % {"n": count if counts else f"{count}+"}


def format_cost(amount: float) -> str:
    return pricing.format_dollars(amount) if pricing.has_prices() else "–"
