"""The form of export.json, part by part, with its bounds.

Exports have these names, imports are read by these models, and the schema in
docs/thread-state.schema.json is made of them. A field without a default is required in
every file. In the schema every name is required, and no other is allowed.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    SkipValidation,
    TypeAdapter,
    create_model,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError

from chatsite.llm.streaming import MAX_JSON_DEPTH as MAX_WRITTEN_DEPTH
from chatsite.llm.streaming import MAX_REPLY_CHARS
from chatsite.plugins import Seq, Time
from chatsite.turns.models import Turn
from memory import models

from .files.reading import STRING, measure_depth
from .tables import exported_lists, exported_values

FORMAT = 1
MAX_SMALL, MAX_INT = 2**15 - 1, 2**31 - 1
# Limits of values that the site only stores, such as those of a policy.
MAX_JSON_DEPTH, MAX_JSON_CHARS = 20, 100_000
MASKED = "masked"


def _check_small(value: Any) -> Any:
    """Check the size of a value; the depth of the whole file was checked before."""
    if len(json.dumps(value, ensure_ascii=False)) > MAX_JSON_CHARS:
        raise PydanticCustomError("too_large", "it is too large")
    return _check_depth(value, most=MAX_JSON_DEPTH)


def _check_depth(value: Any, *, most: int = MAX_WRITTEN_DEPTH + 1) -> Any:
    """Check the depth of a value: by default, as what the site stores of a model."""
    text = json.dumps(value, ensure_ascii=False)
    if measure_depth(STRING.sub(b"", text.encode())) > most:
        raise PydanticCustomError("too_deep", "it is nested too deeply")
    return value


class ShownAs:
    """The type that the schema shows instead of the one that is read."""

    def __init__(self, shown: Any) -> None:
        self.shown = TypeAdapter(shown)

    def __get_pydantic_json_schema__(
        self, _core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return handler(self.shown.core_schema)


T = TypeVar("T")
# Text of a conversation: staff who may not read get its length and hash.
Masked = Annotated[T, MASKED]
# Written, and not read again.
Unread = SkipValidation
Count = Annotated[int, Field(ge=0, le=MAX_INT)]
Small = Annotated[int, Field(ge=0, le=MAX_SMALL)]
Name = Annotated[str, Field(max_length=100)]
Title = Annotated[str, Field(max_length=200)]
Code = Annotated[str, Field(max_length=40)]
Hash = Annotated[str, Field(max_length=64)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Day = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")]
FactPlace = Annotated[
    str, Field(pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}#\d{1,10}$")
]
Json = Annotated[dict[str, Any], AfterValidator(_check_small)]
# JSON that a model or its provider has written: it can be as large as a whole file.
WrittenJson = Annotated[dict[str, Any], AfterValidator(_check_depth)]
Rows = Annotated[list[T], Field(max_length=100_000)]
Few = Annotated[list[T], Field(max_length=1_000)]
Pair = Annotated[list[T], Field(min_length=2, max_length=2)]
Triple = Annotated[list[T], Field(min_length=3, max_length=3)]
# From the first to the last message. They are asked for one by one; a true context has
# few.
Ranges = Annotated[list[Pair[Seq]], Field(max_length=500)]
Role = Literal[*models.Message.Role.values]
TurnState = Literal[*Turn.State.values]
Part = Literal["result", "arguments", "words"]
LOOSE = ConfigDict(
    json_schema_extra={"additionalProperties": True},
    json_schema_serialization_defaults_required=False,
)


class StateRow(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        json_schema_extra={"additionalProperties": False},
        json_schema_serialization_defaults_required=True,
    )


class AskedCall(StateRow):
    """A call of a tool as the model asked for it: whatever that has written."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=False)

    name: str
    args: WrittenJson
    id: Name | None
    type: Literal["tool_call"] = "tool_call"


class AttachedImage(StateRow):
    """The description of an image in a message: its bytes are in `images`, if known."""

    sha256: Sha256
    type: Literal["image/png", "image/jpeg"]
    width: Annotated[int, Field(ge=1, le=20_000)]
    height: Annotated[int, Field(ge=1, le=20_000)]


class AttachedLongText(StateRow):
    """The description of a text that is too long for its message.

    The text is in `long_files`, if it is known.
    """

    sha256: Sha256
    chars: Count


class Attachment(StateRow):
    """A file in the text of a message.

    Its own text is from `start` to `end`, and the mark before it begins `at`; the typed
    text ends before the first. `size` is in bytes of the file, `id` that of the upload.
    """

    # Most are neither images nor long.
    model_config = ConfigDict(json_schema_serialization_defaults_required=False)

    id: Name
    name: Annotated[str, Field(max_length=120)]
    kind: Annotated[str, Field(max_length=20)] = ""
    size: Count = 0
    tokens: Count = 0
    at: Count
    start: Count
    end: Count
    image: AttachedImage | None = None
    long: AttachedLongText | None = None


class RunningReply(StateRow):
    """Transcript: the reply that is being written, as far as it was saved."""

    seq: Seq
    role: Role
    text: Masked[str]
    state: TurnState
    created_at: Time
    client_id: Masked[Annotated[str, Field(pattern=r"^[\x21-\x7e]{1,64}$")] | None] = (
        None
    )
    turn: Unread[int | None] = None
    model: Name = ""
    superseded: bool = False
    excluded: bool = False
    pinned: bool = False


class Message(RunningReply):
    """Transcript: one entry, as users see it, with the files attached to it.

    `sent_text` is what a model gets instead of the text, "" if that is the text itself;
    `late_for` is the message that asked for a result that came after its turn, and
    `extras` are the additions of the model's provider to its calls. `state` and `error`
    are those of its turn.
    """

    sent_text: Masked[str] = ""
    # The separate reasoning of the provider, and the text before its answer.
    reasoning: Masked[Annotated[str, Field(max_length=2 * MAX_REPLY_CHARS)]] = ""
    error: Masked[Name] = ""
    tool_calls: Masked[list[AskedCall]] = []
    extras: Masked[WrittenJson] = {}
    tool_call_id: Masked[Name] = ""
    attachments: Masked[Annotated[list[Attachment], Field(max_length=20)]] = []
    late_for: Seq | None = None
    deleted: bool = False
    superseded_at: Time = None
    excluded_at: Time = None
    pinned_at: Time = None
    deleted_at: Time = None
    imported_at: Unread[datetime | None] = None


class Trigger(StateRow):
    """The reason for a summary."""

    model_config = LOOSE

    kind: Name
    value: Count | float | Name | None = None
    limit: Count | float | Name | None = None


class Summary(StateRow):
    """Summaries: one version.

    The active ones tile the messages from the first one on; the messages behind the
    last of them are the window.
    """

    version: Seq
    level: Small = 0
    generation: Small = 1
    first_seq: Seq
    last_seq: Seq
    text: Masked[str]
    structured: Masked[WrittenJson | None] = None
    flags: Masked[Annotated[dict[Name, list[str]], AfterValidator(_check_small)]] = {}
    trigger: Trigger
    policy_hash: Hash = ""
    prompt_hash: Hash = ""
    model: Name = ""
    tokens_in: Count = 0
    tokens_out: Count = 0
    tokens_before: Count = 0
    tokens_after: Count = 0
    ms: Count = 0
    status: Literal[*models.Summary.Status.values]
    error: Masked[Name] = ""
    created_at: Time = None
    author: Annotated[str, Field(max_length=150)] = ""
    folded_from: Few[Seq] = []


class References(BaseModel):
    """The references of a request; unknown ones of later versions are kept if small."""

    model_config = ConfigDict(extra="allow", strict=True)

    @model_validator(mode="after")
    def _check_rest(self) -> "References":
        _check_small(self.model_extra)
        return self


class ReplyReferences(References):
    """The parts of a request for a reply, by which it is rebuilt.

    An entry of `replaced` is a recalled message with an older value, and the message
    with the newest; one of `rules` is a range in a message, or the hash and the date of
    other words, which are in `prompts`; one of `facts` is its place in another
    conversation, and the hash of its date and words. `steps` are calls and results of
    the turn that ran, and `shortened` says how messages were cut: number, part,
    characters; longer arguments than `clipped` were cut. `tools` are the names that the
    model was offered, with the hash of their schemas; or, refused, those that its
    server did not take; `tools_left_out` are those that it does not take beside others.
    An entry of `images` is an image that was sent: the number of its message, its place
    among the attachments, and its tokens. One of `files` is a quote of a long file:
    number, place, start and end in its text. One of `lines` is a recalled message that
    shows its day only where it differs from that of the message before.
    """

    system: Sha256
    fence: Sha256
    summaries: Few[Seq]
    pinned: Ranges
    window: Ranges
    recalled: Few[Seq]
    newest: Seq | None
    left_out: Ranges = []
    steps: Ranges = []
    tools: Few[Name] = []
    tools_sha256: Sha256 | None = None
    tools_text: Sha256 | None = None
    tool_choice: Name = ""
    tools_refused: Few[Name] = []
    tools_left_out: Few[Name] = []
    images: Few[Triple[Count]] = []
    excerpts: Few[Triple[Count]] = []
    lines: Few[Annotated[list[Seq], Field(min_length=1, max_length=1)]] = []
    files: Few[Annotated[list[Count], Field(min_length=4, max_length=4)]] = []
    replaced: Few[Pair[Seq]] = []
    rules: Few[Triple[Count | Sha256 | Day]] = []
    facts: Few[Pair[FactPlace | Sha256]] = []
    shortened: Annotated[list[Triple[Count | Part]], Field(max_length=4_000)] = []
    clipped: Count = 0


class SummaryReferences(References):
    """The parts of a request for a summary, which identify it; it is not rebuilt."""

    system: Sha256 | None = None
    fence: Sha256 | None = None
    messages: Pair[Seq] | None = None
    summaries: Few[Seq] = []


class ModelCall(StateRow):
    """One request to a model, by reference; `sha256` is of what was sent.

    `body_sha256` is of the whole body, `body_fields` are its other fields.
    """

    purpose: Literal[*models.ModelCall.Purpose.values]
    message__seq: Seq | None = None
    summary__version: Seq | None = None
    refs: Annotated[dict[str, Any], ShownAs(ReplyReferences | SummaryReferences)] = {}
    sha256: Hash
    model: Name
    provider: Name = ""
    tokens_estimated: Count
    parts: Few[tuple[Name, Count]] = []
    body_sha256: Hash = ""
    body_fields: Json = {}
    tokens_input: Count | None = None
    tokens_cached: Count | None = None
    tokens_output: Count | None = None
    first_token_ms: Count | None = None
    total_ms: Count = 0
    attempts: Small = 1
    error: Masked[Name] = ""
    created_at: Time = None


class Conversation(StateRow):
    """The settings of the conversation."""

    model_config = ConfigDict(json_schema_extra={"additionalProperties": True})

    uuid: Annotated[str, Field(min_length=1, max_length=100)]
    title: Masked[Title] = ""
    title_set_by: Literal[*models.Conversation.TitleSource.values] = "copy"
    title_seqs: Few[Seq] | None = None
    created_at: Unread[datetime | None] = None
    policy: Json = {}
    own_policy: Masked[Json | None] = None
    model: Name = ""
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    system_prompt: Masked[str] = ""


class CoreState(StateRow):
    """All that is kept of a conversation."""

    model_config = ConfigDict(
        title="The state of a thread", json_schema_extra={"additionalProperties": True}
    )

    format: Literal[FORMAT]
    conversation: Conversation
    messages: Annotated[Rows[Message], ShownAs(list[Message | RunningReply])]
    summaries: Rows[Summary] = []
    model_calls: Rows[ModelCall] = []
    prompts: dict[Sha256, str] = {}
    # By the names of lists: how many rows its site had and did not write, as their
    # feature was turned off.
    left_out: dict[Name, Count] = {}


def list_rows() -> dict[str, type[StateRow]]:
    """Return the lists of a file without apps, with the form of their rows."""
    return {
        name: get_args(each.annotation)[0]
        for name, each in CoreState.model_fields.items()
        if get_origin(each.annotation) is list
    }


def list_masked(row: type[StateRow]) -> list[str]:
    """Return the names of the fields with text of the conversation."""
    fields = row.model_fields.items()
    return [name for name, each in fields if MASKED in each.metadata]


@cache
def build_thread_state() -> type[CoreState]:
    """Return the form of a whole file, with the additions of the enabled apps."""
    fields = {each.name: (each.form, []) for each in exported_values()}
    own = create_model(
        "Conversation", __base__=Conversation, __doc__=Conversation.__doc__, **fields
    )
    sections = {"conversation": (own, ...)}
    for each in exported_lists():
        row = create_model(
            each.row.__name__, __base__=(each.row, StateRow), __doc__=each.row.__doc__
        )
        sections[each.name] = (Rows[row], [])
    return create_model(
        "ThreadState", __base__=CoreState, __doc__=CoreState.__doc__, **sections
    )


def list_counts(lists: Mapping[str, int]) -> str:
    """Such as "examples (2), trials (1)"."""
    return ", ".join(f"{name[:40]} ({count})" for name, count in lists.items())
