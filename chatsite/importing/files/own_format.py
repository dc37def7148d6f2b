"""The form of this site's own export, as far as an import relies on it."""

import json
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    create_model,
    model_validator,
)
from pydantic_core import PydanticCustomError

from chatsite.hooks import Seq, Time, export_sections
from chatsite.tools.results import MAX_FILES
from memory.engine.rules.detection import MAX_CHARS
from memory.labels.store import MOST as MOST_LABELS
from memory.labels.store import LabelError, clean

from .reading import STRING, depth

MAX_SMALL, MAX_INT = 2**15 - 1, 2**31 - 2
MAX_ROWS = 100_000
# Of values that the site only keeps, such as the arguments of a tool.
MAX_JSON_DEPTH, MAX_JSON_CHARS = 20, 100_000


def _is_small(value: Any) -> Any:
    """Nothing here is deep: the whole file was measured before."""
    text = json.dumps(value, ensure_ascii=False)
    if len(text) > MAX_JSON_CHARS:
        raise PydanticCustomError("too_large", "it is too large")
    if depth(STRING.sub(b"", text.encode())) > MAX_JSON_DEPTH:
        raise PydanticCustomError("too_deep", "it is nested too deeply")
    return value


def _clean_label(value: str) -> str:
    try:
        return clean(value)
    except LabelError:
        raise PydanticCustomError("label", "expected the name of a label") from None


Count = Annotated[int, Field(ge=0, le=MAX_INT)]
Small = Annotated[int, Field(ge=0, le=MAX_SMALL)]
Name = Annotated[str, Field(max_length=100)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Day = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")]
LabelName = Annotated[str, AfterValidator(_clean_label)]
Json = Annotated[dict[str, Any], AfterValidator(_is_small)]
# Ranges are asked for one by one; a true context has few.
Range = Annotated[list[Seq], Field(min_length=2, max_length=2)]
Ranges = Annotated[list[Range], Field(max_length=500)]
Versions = Annotated[list[Seq], Field(max_length=1_000)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore")


class OwnToolCall(_Part):
    name: Name
    args: Json
    id: Name | None
    type: Literal["tool_call"] = "tool_call"


class OwnAttachment(_Part):
    id: Name
    name: Annotated[str, Field(max_length=120)]
    kind: Annotated[str, Field(max_length=20)] = ""
    size: Count = 0
    tokens: Count = 0
    at: Count
    start: Count
    end: Count


class OwnMessage(_Part):
    seq: Seq
    role: Literal["user", "assistant", "tool"]
    text: str
    sent_text: str = ""
    reasoning: Annotated[str, Field(max_length=200_000)] = ""
    state: Literal[
        *("queued", "running", "waiting", "done", "stopped", "failed", "truncated"),
        "interrupted",
    ]
    created_at: Time
    client_id: Annotated[str, Field(pattern=r"^[\x21-\x7e]{1,64}$")] | None = None
    model: Name = ""
    error: Annotated[str, Field(max_length=40)] = ""
    tool_calls: Annotated[list[OwnToolCall], Field(max_length=100)] = []
    tool_call_id: Name = ""
    attachments: Annotated[list[OwnAttachment], Field(max_length=20)] = []
    late_for: Seq | None = None
    turn: Count | None = None
    superseded: bool = False
    excluded: bool = False
    pinned: bool = False
    deleted: bool = False
    superseded_at: Time = None
    excluded_at: Time = None
    pinned_at: Time = None
    deleted_at: Time = None


class OwnCallState(_Part):
    """How far a call of a tool was."""

    seq: Seq
    place: Small
    state: Literal[
        *("asked", "waiting", "running", "done", "failed", "late", "cancelled"),
        "unknown",
    ]
    error: Annotated[str, Field(max_length=40)] = ""
    result_seq: Seq | None = None
    late_seq: Seq | None = None
    allowed: bool | None = None
    answered_at: Time = None
    reason: Annotated[str, Field(max_length=2_000)] = ""
    started_at: Time = None
    finished_at: Time = None


class OwnTrigger(_Part):
    kind: Name
    value: Count | float | Name | None = None
    limit: Count | float | Name | None = None


class OwnSummary(_Part):
    version: Seq
    level: Small = 0
    generation: Small = 1
    first_seq: Seq
    last_seq: Seq
    text: str
    structured: Json | None = None
    flags: Annotated[dict[Name, list[str]], AfterValidator(_is_small)] = {}
    trigger: OwnTrigger
    policy_hash: Annotated[str, Field(max_length=64)] = ""
    prompt_hash: Annotated[str, Field(max_length=64)] = ""
    model: Name = ""
    tokens_in: Count = 0
    tokens_out: Count = 0
    tokens_before: Count = 0
    tokens_after: Count = 0
    ms: Count = 0
    status: Literal["active", "superseded", "stale", "erased", "failed", "rejected"]
    error: Name = ""
    created_at: Time = None
    author: Annotated[str, Field(max_length=150)] = ""
    folded_from: Versions = []


class _Refs(BaseModel):
    """What is added to references later is kept, if it is small."""

    model_config = ConfigDict(extra="allow", strict=True)

    @model_validator(mode="after")
    def _check_rest(self) -> "_Refs":
        _is_small(self.model_extra)
        return self


class OwnReplyRefs(_Refs):
    """By these a request is built again."""

    system: Sha256
    fence: Sha256
    summaries: Versions
    pinned: Ranges
    window: Ranges
    recalled: Versions
    newest: Seq | None
    left_out: Ranges = []
    steps: Ranges = []
    tools: Annotated[list[Name], Field(max_length=1_000)] = []
    tools_sha256: Sha256 | None = None
    tool_choice: Name = ""
    tools_refused: Annotated[list[Name], Field(max_length=1_000)] = []
    excerpts: Annotated[
        list[Annotated[list[Count], Field(min_length=3, max_length=3)]],
        Field(max_length=1_000),
    ] = []
    replaced: Annotated[
        list[Annotated[list[Seq], Field(min_length=2, max_length=2)]],
        Field(max_length=1_000),
    ] = []
    # From where to where in a message; or the hash and the date of other words.
    rules: Annotated[
        list[Annotated[list[Count | Sha256 | Day], Field(min_length=3, max_length=3)]],
        Field(max_length=1_000),
    ] = []


class OwnSummaryRefs(_Refs):
    """By these a request for a summary is known; it is not built again."""

    system: Sha256 | None = None
    fence: Sha256 | None = None
    messages: Range | None = None
    summaries: Versions = []


class OwnRule(_Part):
    """A rule of a message, or of no message in the words of `text`."""

    seq: Seq | None = None
    start: Count = 0
    end: Count = 0
    text: Annotated[str, Field(max_length=MAX_CHARS)] = ""
    kind: Literal["", "instruction", "preference", "constraint"] = ""
    state: Literal["offered", "kept", "confirmed", "dismissed", "replaced"]
    created_at: Time = None


class OwnCall(_Part):
    purpose: Literal["reply", "summary", "title", "result"]
    message__seq: Seq | None = None
    summary__version: Seq | None = None
    refs: dict[str, Any] = {}
    sha256: Annotated[str, Field(max_length=64)]
    model: Name
    provider: Name = ""
    tokens_estimated: Count
    tokens_input: Count | None = None
    tokens_cached: Count | None = None
    tokens_output: Count | None = None
    first_token_ms: Count | None = None
    total_ms: Count = 0
    attempts: Small = 1
    error: Name = ""
    created_at: Time = None


class OwnFile(_Part):
    seq: Seq
    place: Annotated[int, Field(ge=0, lt=MAX_FILES)]
    name: Annotated[str, Field(max_length=200)] = ""
    title: Annotated[str, Field(max_length=200)] = ""
    kind: Annotated[str, Field(max_length=130)] = ""
    url: Annotated[str, Field(max_length=2_000)] = ""
    size: Annotated[int, Field(ge=0, le=2**53)] | None = None
    data: str | None = None


class OwnConversation(_Part):
    uuid: Annotated[str, Field(min_length=1, max_length=100)]
    title: Annotated[str, Field(max_length=200)] = ""
    policy: Json = {}
    own_policy: Json | None = None
    model: Name = ""
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    system_prompt: str = ""
    labels: Annotated[list[LabelName], Field(max_length=MOST_LABELS)] = []


class OwnExport(_Part):
    format: Literal[1]
    conversation: OwnConversation
    messages: Annotated[list[OwnMessage], Field(max_length=MAX_ROWS)]
    summaries: Annotated[list[OwnSummary], Field(max_length=MAX_ROWS)] = []
    model_calls: Annotated[list[OwnCall], Field(max_length=MAX_ROWS)] = []
    tool_calls: Annotated[list[OwnCallState], Field(max_length=MAX_ROWS)] = []
    rules: Annotated[list[OwnRule], Field(max_length=1_000)] = []
    files: Annotated[list[OwnFile], Field(max_length=MAX_ROWS)] = []
    prompts: dict[Sha256, str] = {}


@cache
def build_own_export() -> type[OwnExport]:
    """The form of a whole file, with the sections of the leaf apps that are there."""
    sections = {
        each.name: (Annotated[list[each.row], Field(max_length=MAX_ROWS)], [])
        for each in export_sections
    }
    return create_model("OwnExport", __base__=OwnExport, **sections)
