"""A conversation as Markdown to read: the transcript with what each reply was built
from, a rule where messages were summarised, and every version of the summary.
"""

from typing import Any

from memory.models import Conversation, ModelCall, Summary

from . import export

SPEAKERS = {"user": "You", "assistant": "Assistant", "tool": "Tool"}


def markdown(conversation: Conversation) -> str:
    summaries = list(conversation.summaries.order_by("version"))
    ends = {row.last_seq: row for row in summaries if row.status == "active"}
    calls = _calls(conversation)
    blocks = [f"# {' '.join(conversation.title.split()) or 'Conversation'}"]
    rows = list(export.messages(conversation))
    for index, row in enumerate(rows):
        blocks += [_heading(row), row["text"]]
        blocks += [_built_from(calls[row["seq"]])] if row["seq"] in calls else []
        after = rows[index + 1]["seq"] if index + 1 < len(rows) else None
        for last in sorted(ends):
            if row["seq"] <= last and (after is None or last < after):
                blocks.append(_rule(ends.pop(last)))
    if summaries:
        blocks.append("# Versions of the summary")
        blocks += [_version(row) for row in summaries]
    return "\n\n".join(blocks) + "\n"


def _calls(conversation: Conversation) -> dict[int, ModelCall]:
    """The request that each reply came from, the latest if there were several."""
    rows = conversation.model_calls.filter(
        purpose=ModelCall.Purpose.REPLY, message__isnull=False
    )
    return {
        row.message.seq: row for row in rows.select_related("message").order_by("id")
    }


def _heading(row: dict[str, Any]) -> str:
    notes = [
        name for name in ("superseded", "excluded", "pinned", "deleted") if row[name]
    ]
    notes += ["imported"] if row.get("imported_at") else []
    note = f" ({', '.join(notes)})" if notes else ""
    when = f"{row['created_at']:%Y-%m-%d %H:%M} UTC" if row["created_at"] else ""
    return f"## #{row['seq']} {SPEAKERS[row['role']]}{note}, {when}"


def _built_from(call: ModelCall) -> str:
    """The parts by reference, and the hash that proves them, in one line."""
    refs = call.refs
    parts = ["system prompt", *(f"v{version}" for version in refs["summaries"])]
    parts += [f"pinned {_span(each)}" for each in refs["pinned"]]
    parts += [_span(each) for each in refs["window"]]
    parts += [f"recalled #{seq}" for seq in refs["recalled"]]
    parts += [f"#{refs['newest']}"] if refs["newest"] else []
    reported = "" if call.tokens_input is None else f", {call.tokens_input} reported"
    return (
        f"*Built from {', '.join(parts)}; {call.model}; {call.tokens_estimated} tokens "
        f"estimated{reported}; sha256 `{call.sha256}`*"
    )


def _span(ends: list[int]) -> str:
    first, last = ends
    return f"#{first}" if first == last else f"#{first}–#{last}"


def _rule(summary: Summary) -> str:
    span = f"#{summary.first_seq}–#{summary.last_seq}"
    line = f"---8<--- summarised here: {span} (v{summary.version})"
    return f"{line}\n\n{_quote(summary.text)}"


def _quote(text: str) -> str:
    return "\n".join(f"> {line}" for line in text.splitlines())


def _version(summary: Summary) -> str:
    author = f", by {summary.author}" if summary.author else ""
    head = (
        f"## v{summary.version} of #{summary.first_seq}–#{summary.last_seq}: "
        f"{summary.status}, {summary.created_at:%Y-%m-%d %H:%M} UTC{author}"
    )
    text = _quote(summary.text) or f"> ({summary.error or 'no text'})"
    return f"{head}\n\n{text}"
