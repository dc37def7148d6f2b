"""A conversation as Markdown to read.

It has the transcript with the parts of each request, a rule where messages were
summarised, and every version of the summary.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from chatsite import plugins
from chatsite.features.tools.tool_loop.steps import name_outcomes
from chatsite.pages.presenters import context_pane
from chatsite.pages.presenters.thread_json import list_messages
from chatsite.protocol.errors import explain_compaction
from memory.engine.attachments import typed_part
from memory.models import Conversation, ModelCall, Summary
from memory.ranges import list_noted

SPEAKERS = {"user": _("You"), "assistant": _("Assistant"), "tool": _("Tool")}
NOTES = {
    "superseded": _("replaced"),
    "excluded": _("left out"),
    "pinned": _("pinned"),
    "deleted": _("deleted"),
    "imported_at": _("imported"),
}


def write_markdown(
    conversation: Conversation, *, show: Callable[[str], str] = str
) -> str:
    """`show` changes every text before it is written, such as to mask it."""
    summaries = list(conversation.summaries.order_by("version"))
    ends = {row.last_seq: row for row in summaries if row.status == "active"}
    calls = _find_requests(conversation)
    title = " ".join(show(conversation.title).split()) or gettext("New conversation")
    blocks = [f"# {title}", context_pane.model_view(conversation).account]
    rows = list(list_messages(conversation))
    tools = _ToolWords(conversation, show)
    described = (each.describe for each in plugins.app_data if each.describe)
    beside = [describe(conversation, show) for describe in described]
    for index, row in enumerate(rows):
        blocks += [_write_heading(row), *tools.describe(row)]
        blocks += [_tell_name_parts(calls[row["seq"]])] if row["seq"] in calls else []
        for found in beside:
            blocks += found.get(row["seq"], [])
        after = rows[index + 1]["seq"] if index + 1 < len(rows) else None
        for last in sorted(ends):
            if row["seq"] <= last and (after is None or last < after):
                blocks.append(_write_rule(ends.pop(last), show))
    if summaries:
        blocks.append("# " + gettext("Versions of the summary"))
        blocks += [_write_version(row, show) for row in summaries]
    return "\n\n".join(blocks) + "\n"


class _ToolWords:
    """Messages with what they say of tools: calls with how they ended, and results."""

    def __init__(self, conversation: Conversation, show: Callable[[str], str]) -> None:
        self.show = show
        self.states = name_outcomes(conversation)
        self.names: dict[str, str] = {}  # of the calls so far, by their ids

    def describe(self, row: dict[str, Any]) -> Iterator[str]:
        if row["role"] == "tool":
            yield from self._result(row)
        elif row["text"] or not row.get("tool_calls"):
            files = row.get("attachments", ())
            yield self.show(typed_part(row["text"], files))
            yield from self._attached(row["text"], files)
        for place, call in enumerate(row.get("tool_calls", ())):
            name, id_ = str(call.get("name")), str(call.get("id"))
            self.names[id_] = name
            state = self.states.get((row["seq"], place))
            note = f" ({state})" if state else ""
            yield gettext("Call of %(name)s") % {"name": f"**{self.show(name)}**{note}"}
            arguments = json.dumps(call.get("args"), ensure_ascii=False, indent=2)
            yield fence_code(self.show(arguments), "json")

    def _attached(self, text: str, files: Sequence[dict[str, Any]]) -> Iterator[str]:
        for each in files:
            name = self.show(each["name"])
            yield gettext("Attachment %(name)s") % {"name": f"**{name}**"}
            yield fence_code(self.show(text[each["start"] : each["end"]]))

    def _result(self, row: dict[str, Any]) -> Iterator[str]:
        name = self.show(self.names.get(row["tool_call_id"], ""))
        if name:
            yield gettext("Result of %(name)s") % {"name": f"**{name}**"}
        yield fence_code(self.show(row["text"]))
        if row["sent_text"]:
            words = gettext("The model gets %(n)s of %(all)s characters.")
            numbers = {"n": len(row["sent_text"]), "all": len(row["text"])}
            yield f"*{words % numbers}*"


def fence_code(text: str, language: str = "") -> str:
    """Return a text as a block that none of its backticks can end."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _find_requests(conversation: Conversation) -> dict[int, ModelCall]:
    """Return the request of each reply, the latest if there were several."""
    rows = conversation.model_calls.filter(
        purpose=ModelCall.Purpose.REPLY, message__isnull=False
    )
    return {
        row.message.seq: row for row in rows.select_related("message").order_by("id")
    }


def _write_heading(row: dict[str, Any]) -> str:
    notes = [str(word) for name, word in NOTES.items() if row.get(name)]
    note = f" ({', '.join(notes)})" if notes else ""
    when = f"{row['created_at']:%Y-%m-%d %H:%M} UTC" if row["created_at"] else ""
    return f"## #{row['seq']} {SPEAKERS[row['role']]}{note}, {when}"


def _tell_name_parts(call: ModelCall) -> str:
    """Return the parts by reference, and the hash that proves them, in one line."""
    try:
        parts = _name_parts(call.refs)
    except (LookupError, TypeError, ValueError):
        parts = [gettext("the references are broken")]
    tokens = [gettext("%(n)s estimated") % {"n": call.tokens_estimated}]
    if call.tokens_input is not None:
        tokens.append(gettext("%(n)s reported") % {"n": call.tokens_input})
    count = " ".join((", ".join(tokens), gettext("tokens")))
    built = gettext("Built from %(parts)s") % {"parts": ", ".join(parts)}
    said = [built, call.model, count, f"sha256 `{call.sha256}`"]
    return f"*{'; '.join(said)}*"


def _name_parts(refs: dict[str, Any]) -> list[str]:
    parts = [gettext("system prompt")]
    parts += [f"v{version}" for version in refs["summaries"]]
    pinned = gettext("pinned %(span)s")
    parts += [pinned % {"span": _write_span(each)} for each in refs["pinned"]]
    parts += [_write_span(each) for each in refs["window"]]
    recalled = gettext("recalled #%(seq)s")
    parts += [recalled % {"seq": seq} for seq in sorted(list_noted(refs))]
    parts += [f"#{refs['newest']}"] if refs["newest"] else []
    parts += [_write_span(each) for each in refs.get("steps", ())]
    return parts


def _write_span(ends: list[int]) -> str:
    first, last = ends
    return f"#{first}" if first == last else f"#{first}–#{last}"


def _write_rule(summary: Summary, show: Callable[[str], str]) -> str:
    span = f"#{summary.first_seq}–#{summary.last_seq}"
    if summary.is_trimmed:
        words = gettext("left the window here: %(span)s, without a summary")
        return f"---8<--- {words % {'span': span}}"
    words = gettext("summarised here: %(span)s (v%(version)s)")
    line = words % {"span": span, "version": summary.version}
    return f"---8<--- {line}\n\n{_quote_text(show(summary.text))}"


def _quote_text(text: str) -> str:
    return "\n".join(f"> {line}" for line in text.splitlines())


def _write_version(summary: Summary, show: Callable[[str], str]) -> str:
    words = gettext("v%(version)s of #%(first)s–#%(last)s")
    values = {
        "version": summary.version,
        "first": summary.first_seq,
        "last": summary.last_seq,
    }
    when = f"{summary.created_at:%Y-%m-%d %H:%M} UTC"
    said = [summary.get_status_display(), when]
    said += [str(summary.author)] if summary.author else []
    error = explain_compaction(summary.error) if summary.error else gettext("no text")
    text = _quote_text(show(summary.text)) or f"> ({error})"
    return f"## {words % values}: {', '.join(said)}\n\n{text}"
