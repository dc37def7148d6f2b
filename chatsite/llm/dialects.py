"""Dialects: what a server that calls itself compatible accepts of a request.

Many refuse a field, tools or one of them, the role of the system prompt, calls as they
stand in the history, or two messages of one role in a row. The request is then sent
again in another dialect, and the one that worked is remembered for the model, in this
process.
"""

import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from langchain_core.messages import BaseMessage

from memory.engine.compose import digest_wire
from memory.engine.tools.call_forms import SENT_EXTRAS, CallForm, calls_of

from . import providers
from .tool_schemas import MOST_TOOLS, digest_tool, fit_tools

# What is beside calls, for the provider that has put it there.
EXTRAS = "extras"
NEEDED_MARKS = ("missing", "must be", "must contain", "required", "passed back", "need")
REFUSED_MARKS = (
    *("not support", "unsupported", "unrecognized", "unknown", "unexpected"),
    *("not permitted", "not allowed", "invalid", "not valid", "corrupted"),
    "not be verified",
)
REASONING_MARKS = (
    *("reasoning_content", "reasoning_details", "extra_content"),
    *("encrypted content", "encrypted_content"),
)
SIGNATURE_MARKS = ("thought_signature", "thought signature", "thoughtsignature")
# What is said of calls and results among the messages.
CALL_MARKS = (
    *("tool_call", "tool call", "toolcall", "tool_use", "tool_result", "toolconfig"),
    *("function call", "function_call", "functioncall", "function response"),
    *("call_id", "call id"),
    *("'tool'", '"tool"', "`tool`", "tool role", "role tool", "tool message"),
)
ID_MARKS = (".id", "_id", " id ", "ids")
# What is said of a tool that is offered, and where the tool is not named.
SCHEMA_MARKS = (
    *("schema", "grammar", "function_declarations", "function parameters"),
    "function name",
)
TOOL_NUMBERS = (r"function_declarations\[(\d+)", r"\btools[\[.]+(\d+)")
MOST_TOOLS_TOLD = re.compile(r"(?:maximum|at most|up to|limit|exceeds?)\D{0,40}?(\d+)")
TOO_MANY_MARKS = ("too long", "too many", "maximum", "at most", "exceed", "limit")
# Tools that are left out one by one; then the request goes without any.
MOST_REFUSED = 4
# What replaces a refused role: every server takes the last one.
NEXT_ROLE = {"developer": "system", "system": "user"}
# Servers that render a template on the way fail with 500 where its author raised.
REFUSING = {400, 404, 405, 415, 422, 500, 501}
ALTERNATION_MARKS = ("alternat", "roles in a row", "consecutive", "same role")
UNSUPPORTED_MARKS = (
    *("not support", "unsupported", "not allowed", "not permitted", "not one of"),
    *("invalid", "unexpected", "unknown", "unrecognized", "unrecognised"),
    *("should be", "only "),
)
UNKNOWN_FIELD_MARKS = (
    *("extra inputs", "extra fields", "extra_forbidden", "additional propert"),
    *("unknown field", "unknown parameter", "unrecognized", "unrecognised"),
    *("unexpected keyword", "unknown_parameter", "unsupported_parameter"),
)
# Some refuse tools for one model, others for want of an option of the server.
TOOL_MARKS = (
    *("tools", "tool use", "tool call", "tool choice", "function call", "functions"),
    *("tool_use", "tool_call", "tool_choice", "tool-choice", "function_call"),
)
NO_TOOLS_MARKS = (
    *("not support", "unsupported", "not enabled", "not available", "disabled"),
    *("not implemented", "requires --", "endpoints found that support"),
    *("not fully supported", "not permitted", *UNKNOWN_FIELD_MARKS),
)
# Not an image that can't be read, but images: OpenAI, vLLM, llama.cpp, Ollama, Mistral,
# OpenRouter, and servers that know texts only.
IMAGES = "images"
IMAGE_MARKS = (
    *("image", "multimodal", "multi-modal", "vision", "mmproj"),
    *("content must be a string", "content should be a string", "valid string"),
)
NO_IMAGES_MARKS = (
    *("not support", "unsupported", "only supported", "not a multimodal"),
    *("not enabled", "not available", "endpoints found that support", "at most 0"),
    *("missing data required", "unknown variant", "must be a string", "mmproj"),
    *("should be a string", "valid string", "text-only", "not multimodal"),
)
TOOL_FIELDS = frozenset({"tools", "tool_choice"})
# Only these parts of a refusal are read: others repeat what was sent.
ERROR_FIELDS = ("message", "msg", "param", "loc", "detail", "error", "errors", "type")
MAX_ERROR_CHARS = 1_000


@dataclass(frozen=True, slots=True)
class Dialect:
    """The form in which one model takes its requests.

    It has the role of the system prompt, whether messages of one role are joined, and
    what is left out (`without`): optional fields, images, the entries beside calls.
    `calls` is the form of calls, `wanted` names the entries that are made up beside
    calls where they are missing. `most_tools` is the number of tools that are offered,
    `refused_tools` has the digests of those that are not.
    """

    system_role: str = "system"
    joined: bool = False
    without: frozenset[str] = frozenset()
    calls: CallForm = "plain"
    wanted: tuple[str, ...] = ()
    most_tools: int = MOST_TOOLS
    refused_tools: frozenset[str] = frozenset()

    @property
    def has_tools(self) -> bool:
        return "tools" not in self.without

    @property
    def has_images(self) -> bool:
        return IMAGES not in self.without

    @property
    def has_extras(self) -> bool:
        return EXTRAS not in self.without

    def has_form_of(self, other: "Dialect") -> bool:
        """Return True if both send the same messages and tools in the same form.

        The record of a request says what was sent.
        """
        mine, its = (
            replace(each, without=each.without & {"tools", IMAGES, EXTRAS})
            for each in (self, other)
        )
        return mine == its

    def to_options(self, bind: Mapping[str, Any]) -> dict[str, Any]:
        """Return these arguments of a request without the fields left out."""
        options = {name: bind[name] for name in bind.keys() - self.without}
        usage = {"stream_usage": False} if "stream_options" in self.without else {}
        return options | usage

    def leave_out(self, *names: str) -> "Dialect":
        return replace(self, without=self.without | set(names))


# Mistral refuses ids of calls that have not nine letters and digits.
MISTRAL = re.compile(r"(?i)mi(?:ni)?stral|mixtral|codestral|devstral|magistral|pixtral")
_known: dict[tuple[str, str], Dialect] = {}


def find_dialect(name: str) -> Dialect:
    """Return the dialect that worked for a model, else the configured one."""
    provider = providers.find_provider(name)
    if provider is None:
        return Dialect()
    without = frozenset() if provider.stream_usage else frozenset({"stream_options"})
    calls: CallForm = (
        "nine" if MISTRAL.search(f"{provider.base_url} {name}") else "plain"
    )
    configured = Dialect(provider.system_role, without=without, calls=calls)
    return _known.get((provider.base_url, name), configured)


def remember_dialect(name: str, dialect: Dialect) -> None:
    if provider := providers.find_provider(name):
        _known[provider.base_url, name] = dialect


def find_other(
    dialect: Dialect,
    error: BaseException,
    messages: Sequence[BaseMessage],
    fields: Collection[str],
    tools: Sequence[dict[str, Any]] = (),
) -> Dialect | None:
    """Return the dialect to try after this refusal of `messages`.

    `fields` are the optional fields of the request, `tools` its tools. None if the
    error is about something else.
    """
    if isinstance(error, NotImplementedError) and tools:
        # How a model of LangChain says that it takes none.
        return dialect.leave_out(*TOOL_FIELDS)
    status = getattr(error, "status_code", 400)
    text = read_refusal(error)
    if not text or status not in REFUSING:
        return None
    if other := _without_tools(dialect, text, tools) or _with_extras(
        dialect, text, messages
    ):
        return other
    # Tools are no option: they are left out only where it is them that are refused.
    optional = frozenset(fields) - {"tools"}
    if named := [name for name in optional if name in text]:
        return dialect.leave_out(*named)
    if other := _with_other_messages(dialect, text, messages, fields):
        return other
    if optional and status < 500 and _has_marks(text, UNKNOWN_FIELD_MARKS):
        return dialect.leave_out(*optional)
    return None


def _with_other_messages(
    dialect: Dialect,
    text: str,
    messages: Sequence[BaseMessage],
    fields: Collection[str],
) -> Dialect | None:
    have_images = any(not isinstance(each.content, str) for each in messages)
    if dialect.has_images and have_images and refuses_images(text):
        return dialect.leave_out(IMAGES)
    if "tools" in fields and _has_marks(text, TOOL_MARKS, NO_TOOLS_MARKS):
        return dialect.leave_out(*TOOL_FIELDS)
    if is_about_calls(text, messages):
        return _with_other_calls(dialect, text)
    return _with_other_roles(dialect, text, messages)


def _with_other_roles(
    dialect: Dialect, text: str, messages: Sequence[BaseMessage]
) -> Dialect | None:
    if _has_marks(text, ALTERNATION_MARKS):
        has_neighbours = any(a.type == b.type for a, b in pairwise(messages))
        helps = has_neighbours and not dialect.joined
        return replace(dialect, joined=True) if helps else None
    role = NEXT_ROLE.get(dialect.system_role)
    if role and _refuses_role(text):
        return replace(dialect, system_role=role)
    return None


def find_culprit(
    error: BaseException,
    messages: Sequence[BaseMessage],
    tools: Sequence[dict[str, Any]],
) -> tuple[str, str]:
    """Return the code of what a refusal is about, and the name of the tool.

    The code is one of errors.DETAILS. Both are "" for anything else.
    """
    text = read_refusal(error)
    if named := _find_named_tools(text, tools):
        return "tool_refused", str(tools[named[0]]["function"]["name"])
    if tools and _has_marks(text, SCHEMA_MARKS):
        return "tool_refused", ""
    is_about_extras = _has_marks(text, (*REASONING_MARKS, *SIGNATURE_MARKS))
    if is_about_extras or is_about_calls(text, messages):
        return "calls_refused", ""
    return "", ""


def read_refusal(error: BaseException) -> str:
    """Return the text of a server's error in lower case; "" for any other error."""
    return " ".join(_read_error_texts(getattr(error, "body", None))).lower()


def _without_tools(
    dialect: Dialect, text: str, tools: Sequence[dict[str, Any]]
) -> Dialect | None:
    """Leave out the tools that the refusal names.

    All tools are left out where the refusal is about them and names none.
    """
    if not tools:
        return None
    if named := _find_named_tools(text, tools):
        digests = {digest_tool(tools[number]) for number in named}
        refused = dialect.refused_tools | digests
        if len(dialect.refused_tools) < MOST_REFUSED and len(named) < len(tools):
            return replace(dialect, refused_tools=refused)
        return dialect.leave_out(*TOOL_FIELDS)
    # A context that is too long is counted in tokens.
    is_of_tools = "tools" in text and "token" not in text
    if is_of_tools and _has_marks(text, TOO_MANY_MARKS):
        told = MOST_TOOLS_TOLD.search(text)
        # A number that is not below theirs counts something else, such as characters.
        most = int(told[1]) if told else len(tools)
        most = most if most < len(tools) else len(tools) // 2
        return replace(dialect, most_tools=most) if most > 0 else None
    if _has_marks(text, SCHEMA_MARKS):
        return dialect.leave_out(*TOOL_FIELDS)
    return None


def _find_named_tools(text: str, tools: Sequence[dict[str, Any]]) -> list[int]:
    for pattern in TOOL_NUMBERS:
        if found := {int(n) for n in re.findall(pattern, text) if int(n) < len(tools)}:
            return sorted(found)
    if not _has_marks(text, ("function", "tool", *SCHEMA_MARKS)):
        return []
    names = [str(each["function"]["name"]).lower() for each in tools]
    quoted = set(re.findall(r"['\"`]([\w-]+)['\"`]", text))
    return [number for number, name in enumerate(names) if name in quoted]


def _with_extras(
    dialect: Dialect, text: str, messages: Sequence[BaseMessage]
) -> Dialect | None:
    """Add what a provider misses beside calls, or leave out what it refuses there."""
    is_signature = _has_marks(text, SIGNATURE_MARKS)
    if not (is_signature or _has_marks(text, REASONING_MARKS)):
        return None
    are_sent = any(each.additional_kwargs.get(SENT_EXTRAS) for each in messages)
    if are_sent and dialect.has_extras and _has_marks(text, REFUSED_MARKS):
        return dialect.leave_out(EXTRAS)
    if not _has_marks(text, NEEDED_MARKS):
        return None
    name = "thought_signature" if is_signature else "reasoning_content"
    if name in dialect.wanted:
        return _with_other_calls(dialect, "")
    return replace(dialect, wanted=(*dialect.wanted, name))


def _with_other_calls(dialect: Dialect, text: str) -> Dialect | None:
    """Send calls with ids that every server takes, or as quoted text.

    Some servers take no calls in the history of a request without tools, or none at
    all.
    """
    if dialect.calls == "plain" and _has_marks(text, ID_MARKS):
        return replace(dialect, calls="nine")
    return None if dialect.calls == "quoted" else replace(dialect, calls="quoted")


def is_about_calls(text: str, messages: Sequence[BaseMessage]) -> bool:
    has_calls = any(map(calls_of, messages))
    return has_calls and _has_marks(text, CALL_MARKS)


def _read_error_texts(value: object, depth: int = 0) -> Iterator[str]:
    if isinstance(value, str):
        yield value[:MAX_ERROR_CHARS]
    elif isinstance(value, dict) and depth < 5:
        for name in ERROR_FIELDS:
            yield from _read_error_texts(value.get(name), depth + 1)
    elif isinstance(value, list) and depth < 5:
        for each in value[:20]:
            yield from _read_error_texts(each, depth + 1)


def _has_marks(text: str, *kinds: Collection[str]) -> bool:
    """Return True if the text has a mark of each of these kinds."""
    return all(any(mark in text for mark in marks) for marks in kinds)


def refuses_images(text: str) -> bool:
    return _has_marks(text, IMAGE_MARKS, NO_IMAGES_MARKS)


def _refuses_role(text: str) -> bool:
    is_about = "role" in text and ("system" in text or "developer" in text)
    is_system = "system message" in text or "system prompt" in text
    return _has_marks(text, UNSUPPORTED_MARKS) and (is_about or is_system)


@dataclass(frozen=True, slots=True)
class Tools:
    """The tools that a model may call, in OpenAI's form, and the tokens they take.

    `choice`: "none" for a request that has to be answered without. `is_refused`: the
    model's server takes no tools; `left_out`: the names of those that it does not take.
    """

    schemas: tuple[dict[str, Any], ...] = ()
    tokens: int = 0
    choice: str = ""
    is_refused: bool = False
    left_out: tuple[str, ...] = ()

    def fit_to(self, dialect: Dialect) -> "Tools":
        """Return these tools in the form that the model's provider takes."""
        if not self.schemas:
            return self
        if not dialect.has_tools:
            return replace(self, tokens=0, is_refused=True)
        fitted = fit_tools(
            self.schemas, most=dialect.most_tools, refused=dialect.refused_tools
        )
        share = len(fitted.schemas) / len(self.schemas)
        return replace(
            self,
            schemas=fitted.schemas,
            left_out=fitted.left_out,
            tokens=round(self.tokens * share),
        )

    def to_options(self) -> dict[str, Any]:
        if not self.schemas or self.is_refused:
            return {}  # OpenAI refuses an empty list
        choice = {"tool_choice": self.choice} if self.choice else {}
        return {"tools": list(self.schemas), **choice}

    def to_refs(self) -> dict[str, Any]:
        """Return the record of a request: names, and SHA-256 of the schemas' JSON."""
        left_out = {"tools_left_out": list(self.left_out)} if self.left_out else {}
        if not self.schemas:
            return left_out
        names = [each["function"]["name"] for each in self.schemas]
        if self.is_refused:
            return {"tools_refused": names}
        refs = {
            "tools": names,
            "tools_sha256": digest_wire(self.schemas),
            "tools_text": hashlib.sha256(self._dump().encode()).hexdigest(),
        }
        return refs | left_out | ({"tool_choice": self.choice} if self.choice else {})

    def to_texts(self) -> dict[str, str]:
        """Return the definitions as they are sent, by the hash that to_refs() names."""
        name = self.to_refs().get("tools_text")
        return {name: self._dump()} if name else {}

    def _dump(self) -> str:
        # The order of their fields can matter to a model.
        return json.dumps(self.schemas, ensure_ascii=False, separators=(",", ":"))
