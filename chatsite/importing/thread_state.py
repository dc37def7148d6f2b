"""The state of a thread as JSON, part by part: what export.json holds. A test holds the
schema in docs/thread-state.schema.json, made from here, against exports.
"""

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from chatsite import hooks

# From the first to the last message, both included.
Range = tuple[int, int]
Role = Literal["user", "assistant", "tool"]
TurnState = Literal[
    *("queued", "running", "waiting", "done", "stopped"),
    *("failed", "truncated", "interrupted"),
]
CallState = Literal[
    *("asked", "waiting", "running", "done", "failed"),
    *("late", "cancelled", "unknown"),
]
SummaryStatus = Literal["active", "superseded", "stale", "erased", "failed", "rejected"]


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class AskedCall(Part):
    """A call of a tool as the model asked for it."""

    name: str
    args: dict[str, Any]
    id: str | None
    type: str = ""


class Attachment(Part):
    """A file in the text of a message: its own text is from `start` to `end`, and the
    mark before it begins `at`; what was typed ends before the first. `size` is in bytes
    of the file, `id` that of the upload."""

    id: str
    name: str
    kind: str
    size: int = Field(ge=0)
    tokens: int = Field(ge=0)
    at: int = Field(ge=0)
    start: int = Field(ge=0)
    end: int = Field(ge=0)


class Message(Part):
    """Transcript: one entry, as people see it, with the files attached to it.
    `sent_text` is what a model gets in its place, "" where that is the text itself;
    `late_for` is the message that asked for a result that came after its turn. `state`
    and `error` are those of its turn."""

    seq: int = Field(ge=1)
    role: Role
    text: str
    sent_text: str
    reasoning: str
    state: TurnState
    created_at: datetime
    client_id: str | None
    turn: int | None
    model: str
    error: str
    tool_calls: list[AskedCall]
    tool_call_id: str
    attachments: list[Attachment]
    late_for: int | None
    superseded: bool
    excluded: bool
    pinned: bool
    deleted: bool
    superseded_at: datetime | None
    excluded_at: datetime | None
    pinned_at: datetime | None
    deleted_at: datetime | None
    imported_at: datetime | None


class RunningReply(Part):
    """Transcript: the reply that is being written, as far as it was saved."""

    seq: int = Field(ge=1)
    role: Literal["assistant"]
    text: str
    state: Literal["running"]
    created_at: datetime
    client_id: None
    turn: int
    model: str
    superseded: Literal[False]
    excluded: Literal[False]
    pinned: Literal[False]


class ToolCall(Part):
    """Execution: how far a call is. `seq` is the message that asked for it, `place`
    its place there, `result_seq` what answers it, `late_seq` what came later."""

    seq: int
    place: int = Field(ge=0)
    call_id: str
    name: str
    state: CallState
    error: str
    result_seq: int | None
    late_seq: int | None
    allowed: bool | None
    answered_at: datetime | None
    answered_by: str
    reason: str
    expires_at: datetime | None
    deadline_at: datetime | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class Summary(Part):
    """Summaries: one version. Those that are active tile the messages from the first
    one on; the messages behind the last of them are the window."""

    version: int = Field(ge=1)
    level: int
    generation: int
    first_seq: int
    last_seq: int
    text: str
    status: SummaryStatus
    trigger: dict[str, Any]
    model: str
    tokens_in: int
    tokens_out: int
    tokens_before: int
    tokens_after: int
    ms: int
    error: str
    policy_hash: str
    prompt_hash: str
    structured: dict[str, Any] | None
    flags: dict[str, Any]
    created_at: datetime
    author: str
    folded_from: list[int]


class References(BaseModel):
    """What a request was made of. That of a summary has `messages` and `summaries`."""

    model_config = ConfigDict(extra="allow")

    system: str = ""
    fence: str = ""
    summaries: list[int] = []
    pinned: list[Range] = []
    window: list[Range] = []
    left_out: list[Range] = []
    recalled: list[int] = []
    excerpts: list[tuple[int, int, int]] = []
    newest: int | None = None
    # A recalled message with an older value, and the message with the newest.
    replaced: list[tuple[int, int]] = []
    # From where to where in the text of a message; or the SHA-256 of other words, in
    # `prompts`, and their date.
    rules: list[tuple[int, int, int] | tuple[int, str, str]] = []
    # Calls and results of the turn that ran, and how messages were shortened: number,
    # part, characters; longer arguments than `clipped` were cut.
    steps: list[Range] = []
    shortened: list[tuple[int, Literal["result", "arguments", "words"], int]] = []
    clipped: int = 0
    # What the model was offered: names, SHA-256 of the schemas as canonical JSON, and
    # "none" where it had to answer without; or the names of those that its server did
    # not take.
    tools: list[str] = []
    tools_sha256: str = ""
    tool_choice: str = ""
    tools_refused: list[str] = []
    messages: list[int] = []


class ModelCall(Part):
    """One request to a model, by reference; `sha256` is of what was sent."""

    purpose: Literal["reply", "summary", "title", "result"]
    message__seq: int | None
    summary__version: int | None
    refs: References
    sha256: str
    model: str
    provider: str
    tokens_estimated: int
    tokens_input: int | None
    tokens_cached: int | None
    tokens_output: int | None
    first_token_ms: int | None
    total_ms: int
    attempts: int
    error: str
    created_at: datetime


class Rule(Part):
    """What a person wants to hold for the whole conversation: from `start` to `end` of
    the text of message `seq`, or in the words of `text`."""

    seq: int | None
    start: int = Field(ge=0)
    end: int = Field(ge=0)
    text: str
    kind: Literal["", "instruction", "preference", "constraint"]
    state: Literal["offered", "kept", "confirmed", "dismissed", "replaced"]
    created_at: datetime


class ResultFile(Part):
    """A file or an address in the result of a call; `data` is base64."""

    seq: int
    place: int
    name: str
    title: str
    kind: str
    url: str
    size: int | None
    data: str | None


class Conversation(BaseModel):
    model_config = ConfigDict(extra="allow")

    uuid: str
    title: str
    created_at: datetime
    policy: dict[str, Any]
    own_policy: dict[str, Any]
    model: str
    temperature: float | None
    system_prompt: str
    # Those that its owner has given to it.
    labels: list[str]


class CoreState(BaseModel):
    """All that is kept of a conversation."""

    model_config = ConfigDict(extra="allow", title="The state of a thread")

    format: Literal[1]
    conversation: Conversation
    messages: list[Message | RunningReply]
    tool_calls: list[ToolCall]
    summaries: list[Summary]
    model_calls: list[ModelCall]
    rules: list[Rule]
    files: list[ResultFile]
    prompts: dict[str, str]


def _strict(row: type[BaseModel]) -> type[BaseModel]:
    return create_model(row.__name__, __base__=(row, Part), __doc__=row.__doc__)


def build_thread_state() -> type[CoreState]:
    """The form of a whole file, with the sections of the leaf apps that are there."""
    sections = {each.name: list[_strict(each.row)] for each in hooks.export_sections}
    return create_model(
        "ThreadState", __base__=CoreState, __doc__=CoreState.__doc__, **sections
    )
