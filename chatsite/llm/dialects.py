"""Dialects: what a server that calls itself compatible accepts of a request.

Many refuse a field, tools, the role of the system prompt, or two messages of one role
in a row. The request is then sent again in another dialect, and the one that worked is
remembered for the model, in this process.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from langchain_core.messages import BaseMessage

from . import providers

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
    """The role of the system prompt, whether messages of one role are joined, and what
    is left out: optional fields, and images."""

    system_role: str = "system"
    joined: bool = False
    without: frozenset[str] = frozenset()

    @property
    def has_tools(self) -> bool:
        return "tools" not in self.without

    @property
    def has_images(self) -> bool:
        return IMAGES not in self.without

    def has_form_of(self, other: "Dialect") -> bool:
        """Whether both send the same messages in the same form, with the same tools:
        the record of a request says what was sent."""
        mine, its = (
            (each.system_role, each.joined, each.has_tools, each.has_images)
            for each in (self, other)
        )
        return mine == its


_known: dict[tuple[str, str], Dialect] = {}


def find_dialect(name: str) -> Dialect:
    """The dialect of a model: the one that worked, else the one that was set."""
    provider = providers.find_provider(name)
    if provider is None:
        return Dialect()
    without = frozenset() if provider.stream_usage else frozenset({"stream_options"})
    configured = Dialect(provider.system_role, without=without)
    return _known.get((provider.base_url, name), configured)


def remember_dialect(name: str, dialect: Dialect) -> None:
    if provider := providers.find_provider(name):
        _known[provider.base_url, name] = dialect


def forget_dialects() -> None:
    _known.clear()


def find_other(
    dialect: Dialect,
    error: BaseException,
    messages: Sequence[BaseMessage],
    fields: Collection[str],
) -> Dialect | None:
    """The dialect to try after this refusal of `messages`, sent with the optional
    `fields`; None if the error is about something else."""
    import openai

    status = getattr(error, "status_code", 400)
    if not isinstance(error, openai.APIError) or status not in REFUSING:
        return None
    text = " ".join(_read_error_texts(error.body)).lower()
    # Tools are no option: they are left out only where it is them that are refused.
    optional = frozenset(fields) - {"tools"}
    if named := [name for name in optional if name in text]:
        return replace(dialect, without=dialect.without | set(named))
    if dialect.has_images and _have_images(messages) and _refuses_images(text):
        return replace(dialect, without=dialect.without | {IMAGES})
    if "tools" in fields and _refuses_tools(text):
        return replace(dialect, without=dialect.without | TOOL_FIELDS)
    if any(mark in text for mark in ALTERNATION_MARKS):
        has_neighbours = any(a.type == b.type for a, b in pairwise(messages))
        helps = has_neighbours and not dialect.joined
        return replace(dialect, joined=True) if helps else None
    role = NEXT_ROLE.get(dialect.system_role)
    if role and _refuses_role(text):
        return replace(dialect, system_role=role)
    is_unknown_field = any(mark in text for mark in UNKNOWN_FIELD_MARKS)
    if optional and status < 500 and is_unknown_field:
        return replace(dialect, without=dialect.without | optional)
    return None


def _read_error_texts(value: object, depth: int = 0) -> Iterator[str]:
    if isinstance(value, str):
        yield value[:MAX_ERROR_CHARS]
    elif isinstance(value, dict) and depth < 5:
        for name in ERROR_FIELDS:
            yield from _read_error_texts(value.get(name), depth + 1)
    elif isinstance(value, list) and depth < 5:
        for each in value[:20]:
            yield from _read_error_texts(each, depth + 1)


def _refuses_tools(text: str) -> bool:
    is_about = any(mark in text for mark in TOOL_MARKS)
    return is_about and any(mark in text for mark in NO_TOOLS_MARKS)


def _have_images(messages: Sequence[BaseMessage]) -> bool:
    return any(not isinstance(message.content, str) for message in messages)


def _refuses_images(text: str) -> bool:
    is_about = any(mark in text for mark in IMAGE_MARKS)
    return is_about and any(mark in text for mark in NO_IMAGES_MARKS)


def _refuses_role(text: str) -> bool:
    is_about = "role" in text and ("system" in text or "developer" in text)
    is_system = "system message" in text or "system prompt" in text
    is_unsupported = any(mark in text for mark in UNSUPPORTED_MARKS)
    return is_unsupported and (is_about or is_system)
