"""The form of this site's own export, as far as an import relies on it."""

from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

MAX_SMALL, MAX_INT = 2**15 - 1, 2**31 - 2

Seq = Annotated[int, Field(ge=1, le=MAX_INT)]
Count = Annotated[int, Field(ge=0, le=MAX_INT)]
Small = Annotated[int, Field(ge=0, le=MAX_SMALL)]
Name = Annotated[str, Field(max_length=100)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Time = AwareDatetime | None
# Ranges are asked for one by one; a true context has few.
Range = Annotated[list[Seq], Field(min_length=2, max_length=2)]
Ranges = Annotated[list[Range], Field(max_length=500)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore")


class OwnToolCall(_Part):
    name: Name
    args: dict[str, Any]
    id: Name | None
    type: Literal["tool_call"] = "tool_call"


class OwnMessage(_Part):
    seq: Seq
    role: Literal["user", "assistant", "tool"]
    text: str
    state: Literal[
        *("queued", "running", "done", "stopped", "failed", "truncated", "interrupted")
    ]
    created_at: Time
    client_id: Annotated[str, Field(pattern=r"^[\x21-\x7e]{1,64}$")] | None = None
    model: Name = ""
    error: Annotated[str, Field(max_length=40)] = ""
    tool_calls: list[OwnToolCall] = []
    tool_call_id: Name = ""
    superseded: bool = False
    excluded: bool = False
    pinned: bool = False
    deleted: bool = False
    superseded_at: Time = None
    excluded_at: Time = None
    pinned_at: Time = None
    deleted_at: Time = None


class OwnTrigger(_Part):
    kind: Name
    value: float | int | str | None = None
    limit: float | int | str | None = None


class OwnSummary(_Part):
    version: Seq
    level: Small = 0
    generation: Small = 1
    first_seq: Seq
    last_seq: Seq
    text: str
    structured: dict[str, Any] | None = None
    flags: dict[str, list[str]] = {}
    trigger: OwnTrigger
    policy_hash: Annotated[str, Field(max_length=64)] = ""
    prompt_hash: Annotated[str, Field(max_length=64)] = ""
    model: Name = ""
    tokens_in: Count = 0
    tokens_out: Count = 0
    tokens_before: Count = 0
    tokens_after: Count = 0
    ms: Count = 0
    status: Literal["active", "superseded", "stale", "failed", "rejected"]
    error: Name = ""
    created_at: Time = None
    author: str = ""
    folded_from: Annotated[list[Seq], Field(max_length=1_000)] = []


class OwnRefs(BaseModel):
    """By these a request is built again; what is added to them later is kept."""

    model_config = ConfigDict(extra="allow")

    system: Sha256
    fence: Sha256
    summaries: Annotated[list[Seq], Field(max_length=1_000)]
    pinned: Ranges
    window: Ranges
    recalled: Annotated[list[Seq], Field(max_length=1_000)]
    newest: Seq | None


class OwnCall(_Part):
    purpose: Literal["reply", "summary", "title"]
    message__seq: Seq | None = None
    summary__version: Seq | None = None
    refs: dict[str, Any] = {}
    sha256: Annotated[str, Field(max_length=64)]
    model: Name
    tokens_estimated: Count
    tokens_input: Count | None = None
    tokens_cached: Count | None = None
    tokens_output: Count | None = None
    first_token_ms: Count | None = None
    total_ms: Count = 0
    attempts: Small = 1
    error: Name = ""
    created_at: Time = None


class OwnConversation(_Part):
    uuid: Annotated[str, Field(min_length=1, max_length=100)]
    title: Annotated[str, Field(max_length=200)] = ""
    policy: dict[str, Any] = {}
    own_policy: dict[str, Any] | None = None
    model: str = ""
    system_prompt: str = ""


class OwnExport(_Part):
    format: Literal[1]
    conversation: OwnConversation
    messages: list[OwnMessage]
    summaries: list[OwnSummary] = []
    model_calls: list[OwnCall] = []
    prompts: dict[Sha256, str] = {}
