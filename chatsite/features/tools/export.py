"""The calls and the files of their results in exports, imports and branches."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Literal

from django.contrib.auth import get_user_model
from django.db.models import F, QuerySet
from pydantic import BaseModel, Field

from chatsite.plugins import Seq, Time
from memory import bundle
from memory.models import Conversation, Message

from .models import ADDRESS, ToolCall, digest_of
from .results import MAX_FILES
from .tool_loop import result_files

State = ToolCall.State
# The states of unfinished calls in a copy, which runs nothing and gets no result.
ENDED = {
    State.ASKED: State.CANCELLED,
    State.WAITING: State.CANCELLED,
    State.LATE: State.CANCELLED,
    State.RUNNING: State.UNKNOWN,
}
# Columns that a copy has of its own.
OF_ROW = ("expires_at", "deadline_at", "created_at")
KEPT = ("error", "allowed", "answered_at", "reason", "started_at", "finished_at")


class ToolCallRow(BaseModel):
    """Execution: the state of a call.

    `seq` is the message that asked for it, `place` its place there, `result_seq` the
    message that answers it, `late_seq` its late result.
    """

    seq: Seq
    place: Annotated[int, Field(ge=0, le=2**15 - 1)]
    call_id: Annotated[str, Field(max_length=100)] = ""
    name: Annotated[str, Field(max_length=100)] = ""
    state: Literal[*State.values]
    error: Annotated[str, Field(max_length=40)] = ""
    result_seq: Seq | None = None
    late_seq: Seq | None = None
    allowed: bool | None = None
    answered_at: Time = None
    answered_by: Annotated[str, Field(max_length=200)] = ""
    reason: Annotated[str, Field(max_length=2_000)] = ""
    expires_at: Time = None
    deadline_at: Time = None
    created_at: Time = None
    started_at: Time = None
    finished_at: Time = None


class ResultFileRow(BaseModel):
    """A file or an address in the result of a call; `data` is base64.

    `source` is the number by which replies cite it.
    """

    seq: Seq
    place: Annotated[int, Field(ge=0, lt=MAX_FILES)]
    name: Annotated[str, Field(max_length=200)] = ""
    title: Annotated[str, Field(max_length=200)] = ""
    kind: Annotated[str, Field(max_length=130)] = ""
    url: Annotated[str, Field(max_length=2_000)] = ""
    size: Annotated[int, Field(ge=0, le=2**53)] | None = None
    source: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    data: str | None = None


def read_calls(conversation: Conversation) -> list[dict[str, Any]]:
    """Return the state of each call; requests and answers are messages."""
    return _read_rows(conversation.tool_calls.all())


def _read_rows(calls: QuerySet[ToolCall]) -> list[dict[str, Any]]:
    rows = calls.order_by("pk").values(
        *("place", "call_id", "name", "state", *KEPT, *OF_ROW),
        seq=F("request__seq"),
        result_seq=F("result__seq"),
        late_seq=F("late_result__seq"),
        by=F(f"answered_by__{get_user_model().USERNAME_FIELD}"),
    )
    return [{"answered_by": row.pop("by") or "", **row} for row in rows]


def write_calls(
    conversation: Conversation,
    messages: Mapping[int, Message],
    rows: Iterable[ToolCallRow],
    batch: bundle.Batch = bundle.at_once,
) -> None:
    """Store the state of calls of copied or imported messages, after their turns.

    None of these calls can run. Rows of other calls are left out, and each result
    belongs to one call.
    """
    turns = dict(conversation.turns.values_list("user_message__seq", "pk"))
    starts, calls, seen = sorted(turns), [], set()
    free = {seq for seq, row in messages.items() if row.role == Message.Role.TOOL}
    for row in rows:
        request = messages.get(row.seq)
        at = bisect_right(starts, row.seq) - 1
        is_known = (row.seq, row.place) in seen
        if is_known or not request or at < 0 or row.place >= len(request.tool_calls):
            continue
        seen.add((row.seq, row.place))
        found = [seq for seq in (row.result_seq, row.late_seq) if seq in free]
        free.difference_update(found)
        asked = request.tool_calls[row.place]
        call = ToolCall(
            conversation=conversation,
            turn_id=turns[starts[at]],
            request=request,
            place=row.place,
            call_id=asked.get("id") or "",
            name=asked["name"][:100],
            arguments=asked["args"],
            digest=digest_of(asked["name"], asked["args"]),
            state=ENDED.get(row.state, row.state),
            result=messages[row.result_seq] if row.result_seq in found else None,
            late_result=messages[row.late_seq] if row.late_seq in found else None,
            answered_by=conversation.owner if row.allowed is not None else None,
            **{name: getattr(row, name) for name in KEPT},
        )
        calls.append(call)
    for some in bundle.batches(calls, lambda call: len(str(call.arguments))):
        with batch(0):
            ToolCall.objects.bulk_create(some)


def read_files(conversation: Conversation) -> list[dict[str, Any]]:
    return result_files.export(conversation.result_files)


def write_files(
    conversation: Conversation,
    messages: Mapping[int, Message],
    rows: Iterable[ResultFileRow],
    batch: bundle.Batch = bundle.at_once,
) -> None:
    values = (row.model_dump() for row in rows)
    result_files.write(conversation, messages, values, batch)


def copy_calls(
    conversation: Conversation, branch: Conversation, messages: Mapping[int, Message]
) -> None:
    """Give a branch of these messages their calls."""
    last = max(messages, default=0)
    rows = _read_rows(conversation.tool_calls.filter(request__seq__lte=last))
    write_calls(branch, messages, (ToolCallRow.model_construct(**row) for row in rows))


def copy_files(
    conversation: Conversation, branch: Conversation, messages: Mapping[int, Message]
) -> None:
    """Give a branch of these messages the files in results."""
    last = max(messages, default=0)
    files = conversation.result_files.filter(message__seq__lte=last)
    result_files.write(branch, messages, result_files.export(files))


def describe_sources(
    conversation: Conversation, show: Callable[[str], str]
) -> dict[int, list[str]]:
    """Definitions below the results: they make links of the numbers in replies."""
    rows = conversation.result_files.filter(source__isnull=False)
    lines: dict[int, list[str]] = {}
    seen: set[int] = set()
    for seq, number, url, title in rows.order_by("message__seq", "place").values_list(
        *("message__seq", "source", "url", "title")
    ):
        if number not in seen and ADDRESS.match(url):
            seen.add(number)
            title = " ".join(show(title).split())
            title = title.replace("\\", "").replace('"', "'")
            address = "".join(show(url).split()).replace("<", "%3C")
            line = f'[{number}]: <{address.replace(">", "%3E")}> "{title}"'
            lines.setdefault(seq, []).append(line)
    return {seq: ["\n".join(found)] for seq, found in lines.items()}
