"""Dialects: what a provider accepts of a request, beside what all of them do.

Many servers that call themselves compatible refuse a field, the role of the system
prompt, or two messages of one role in a row. Such a refusal is recognised once, the
request is sent again in another dialect, and the one that worked is remembered for the
model, in this process.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from django.conf import settings
from langchain_core.messages import BaseMessage

# Where a refused role goes: every server takes the last one.
NEXT_ROLE = {"developer": "system", "system": "user"}
# Servers that render a template on the way fail with 500 where its author raised.
REFUSING = {400, 404, 415, 422, 500, 501}
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
# Of a refusal only these parts are read: others repeat what was sent.
TELLING = ("message", "msg", "param", "loc", "detail", "error", "errors", "type")
MAX_TOLD = 1_000


@dataclass(frozen=True, slots=True)
class Dialect:
    """The role of the system prompt, whether messages of one role are joined, and the
    optional fields that are left out."""

    system_role: str = "system"
    joined: bool = False
    without: frozenset[str] = frozenset()

    def has_form_of(self, other: "Dialect") -> bool:
        """Whether both send the same messages in the same form."""
        return (self.system_role, self.joined) == (other.system_role, other.joined)


_known: dict[tuple[str, str], Dialect] = {}


def of(name: str) -> Dialect:
    """The dialect of a model: what was found out, else what the settings say."""
    without = frozenset() if settings.STREAM_USAGE else frozenset({"stream_options"})
    configured = Dialect(settings.SYSTEM_ROLE, without=without)
    return _known.get((settings.OPENAI_BASE_URL, name), configured)


def remember(name: str, dialect: Dialect) -> None:
    _known[settings.OPENAI_BASE_URL, name] = dialect


def forget_all() -> None:
    _known.clear()


def find_other(
    dialect: Dialect,
    error: BaseException,
    messages: Sequence[BaseMessage],
    fields: Iterable[str],
) -> Dialect | None:
    """The dialect to try after this refusal of `messages`, sent with the optional
    `fields`; None where it is about something else."""
    import openai

    status = getattr(error, "status_code", 400)
    if not isinstance(error, openai.APIError) or status not in REFUSING:
        return None
    told = " ".join(_read(error.body)).lower()
    if named := [name for name in fields if name in told]:
        return replace(dialect, without=dialect.without | set(named))
    if _has(told, ALTERNATION_MARKS):
        is_cure = not dialect.joined and _has_neighbours(messages)
        return replace(dialect, joined=True) if is_cure else None
    role = NEXT_ROLE.get(dialect.system_role)
    if role and _refuses_role(told):
        return replace(dialect, system_role=role)
    fields = frozenset(fields)
    if fields and status < 500 and _has(told, UNKNOWN_FIELD_MARKS):
        return replace(dialect, without=dialect.without | fields)
    return None


def _read(value: object, depth: int = 0) -> Iterator[str]:
    if isinstance(value, str):
        yield value[:MAX_TOLD]
    elif isinstance(value, dict) and depth < 5:
        for name in TELLING:
            yield from _read(value.get(name), depth + 1)
    elif isinstance(value, list) and depth < 5:
        for each in value[:20]:
            yield from _read(each, depth + 1)


def _has(told: str, marks: Iterable[str]) -> bool:
    return any(mark in told for mark in marks)


def _has_neighbours(messages: Sequence[BaseMessage]) -> bool:
    return any(one.type == other.type for one, other in pairwise(messages))


def _refuses_role(told: str) -> bool:
    is_about = "role" in told and ("system" in told or "developer" in told)
    is_system = "system message" in told or "system prompt" in told
    return (is_about or is_system) and _has(told, UNSUPPORTED_MARKS)
