"""What lists and pages say of one version of a summary, in words and numbers."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from memory.models import Summary

TRIGGERS = {
    "tokens": gettext_lazy("tokens"),
    "messages": gettext_lazy("messages"),
    "turns": gettext_lazy("turns"),
    "fraction": gettext_lazy("share of the model's window"),
    "age": gettext_lazy("age"),
    "idle": gettext_lazy("idle time"),
    "summary_tokens": gettext_lazy("tokens of summaries"),
    "room": gettext_lazy("tokens that fit"),
    "manual": gettext_lazy("by hand"),
    "change": gettext_lazy("another policy"),
    "edit": gettext_lazy("edited by hand"),
    "restore": gettext_lazy("restored"),
}


def trigger_words(kind: str) -> str:
    """What set off a compaction; what nobody knows is shown as it is."""
    return str(TRIGGERS.get(kind, kind.replace("_", " ")))


def because(row: Summary) -> str:
    trigger = row.trigger if isinstance(row.trigger, dict) else {}
    value, limit = trigger.get("value"), trigger.get("limit")
    name = str(trigger.get("kind", ""))
    kind = trigger_words(name)
    if name in ("edit", "restore") and value:
        return _("%(kind)s: v%(value)s") % {"kind": kind, "value": value}
    if not limit:
        return kind
    words = _("%(kind)s: %(value)s (limit %(limit)s)")
    return words % {"kind": kind, "value": value, "limit": limit}


def span(row: Summary) -> str:
    return f"#{row.first_seq}–#{row.last_seq}"


def tokens(row: Summary) -> str:
    both = f"{row.tokens_before:,}\u00a0→\u00a0{row.tokens_after:,}"
    if not row.tokens_before:
        return both
    return f"{both} ({row.tokens_after / row.tokens_before:.0%})"


def compacted(row: Summary) -> int:
    """How many numbers it was the first to stand for."""
    spans = [(each.first_seq, each.last_seq) for each in row.folded_from.all()]
    before = sum(last - first + 1 for first, last in spans)
    return max(0, row.last_seq - row.first_seq + 1 - before)


def author(row: Summary) -> str:
    return row.author.get_username() if row.author else _("automatic")


def flags(row: Summary) -> list[str]:
    """What is doubtful about a version; `follows` says whether another ends before."""
    found = []
    if count := row.unsupported:
        words = ngettext("%(n)s fact unsupported", "%(n)s facts unsupported", count)
        found.append(words % {"n": count})
    # Lists do not read the column: it can hold what was said.
    if "flags" not in row.get_deferred_fields() and "unmatched" in row.flags:
        found.append(_("important messages not looked for"))
    is_first = row.first_seq == 1 or getattr(row, "follows", True)
    if row.status == Summary.Status.ACTIVE and not is_first:
        found.append(_("gap before it"))
    if row.generation > 1:
        found.append(_("generation %(n)s") % {"n": row.generation})
    return found
