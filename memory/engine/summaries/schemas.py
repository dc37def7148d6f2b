"""The forms of a summary: profiles, topics, or a caller's pydantic class.

A form is described in the prompt, the reply is parsed as its data, and the data
rendered as the text that the model is shown. The data is plain JSON, stored beside the
text.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, Field, model_validator

from ..blank import is_blank
from ..policy import Policy

Data = dict[str, Any]

FENCED = re.compile(r"^```(?:json)?\s*(\{.*\})\s*```$", re.DOTALL)
# The beginning of a date's shape; data has the same form.
DATE_SHAPE = "YYYY-MM-DD"
TIME_SHAPE = f"{DATE_SHAPE}Thh:mm"
TIME = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(?::[\d.]+)?(?:Z|[+-][\d:]+)?)?")
STAMP = re.compile(r"\[(\d{4}-\d\d-\d\d) \d\d:\d\d\]")
# Fields that are rendered without their name.
BARE = ("topic", "text")
# Headings of a summary in Chinese; other fields keep their names.
CHINESE_HEADINGS = {
    **{"user_profile": "用户信息", "topics": "主题", "facts": "要点"},
    **{"action_items": "待办事项", "customer": "客户", "issues": "问题"},
    **{"solutions": "解决办法", "pending": "待处理", "student": "学生"},
    **{
        "topics_covered": "已学内容",
        "understanding": "已掌握",
        "weak_areas": "薄弱之处",
    },
    **{"homework": "作业", "goals": "目标", "decisions": "决定", "blockers": "阻碍"},
    **{"artifacts": "成果", "next_steps": "下一步"},
}
# Classes may contain each other, even themselves.
MAX_DEPTH = 4


class Topic(BaseModel):
    """One subject of the conversation and all that was said about it."""

    topic: str
    text: str


class Outline(BaseModel):
    """Base of the profiles: every field is a list, an absent one is empty."""

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, values: Any) -> Any:
        if not isinstance(values, dict) or not cls.model_fields.keys() & values:
            raise ValueError("expected at least one of the fields")
        return {name: [] for name in cls.model_fields} | values


class GeneralOutline(Outline):
    user_profile: list[str] = Field(description="name, home, work, people, likes")
    topics: list[Topic] = Field(description="what was said")
    facts: list[str] = Field(description="decisions, reasons, other facts")
    action_items: list[str] = Field(description="open, promised, planned")


class CustomerServiceOutline(Outline):
    customer: list[str] = Field(description="name, contact, orders, products")
    issues: list[str] = Field(description="what was reported, since when")
    solutions: list[str] = Field(description="what was tried or given, result")
    pending: list[str] = Field(description="still to be done, by whom")
    facts: list[str] = Field(description="other facts")


class TutoringOutline(Outline):
    student: list[str] = Field(description="who the student is, goals, level")
    topics_covered: list[Topic] = Field(description="what was taught, how far")
    understanding: list[str] = Field(description="what the student has understood")
    weak_areas: list[str] = Field(description="mistakes, what needs more work")
    homework: list[str] = Field(description="what was set, for when")
    facts: list[str] = Field(description="other facts")


class ProjectOutline(Outline):
    goals: list[str] = Field(description="what is to be achieved, by when")
    decisions: list[str] = Field(description="decided or rejected, why")
    action_items: list[str] = Field(description="who does what, by when")
    blockers: list[str] = Field(description="what holds the work up")
    artifacts: list[str] = Field(description="files, links, versions, commands")
    next_steps: list[str] = Field(description="what comes next")
    facts: list[str] = Field(description="other facts")


class TopicsOutline(Outline):
    topics: list[Topic] = Field(description="all that is known about it")


SCHEMAS: dict[str, type[BaseModel]] = {
    "general": GeneralOutline,
    "customer_service": CustomerServiceOutline,
    "tutoring": TutoringOutline,
    "project": ProjectOutline,
}


def schema_for(policy: Policy) -> type[BaseModel]:
    if isinstance(policy.profile, type):
        return policy.profile
    return TopicsOutline if policy.strategy == "topics" else SCHEMAS[policy.profile]


@cache
def describe_schema(schema: type[BaseModel]) -> str:
    """Return the schema for a prompt, as the object to be written.

    This takes a third of the tokens of its JSON schema and is as clear to a model. A
    class with a field that cannot be shown this way is described by its JSON schema.
    """
    try:
        shape = _describe_fields(schema, "", MAX_DEPTH)
    except TypeError:
        shape = schema.model_json_schema()
    return json.dumps(shape, ensure_ascii=False, separators=(",", ":"))


def _describe_fields(schema: type[BaseModel], about: str, depth: int) -> Data:
    """Return the shape of a class.

    `about`: the description of the field that holds it, used for the last field without
    one.
    """
    fields = schema.model_fields
    silent = [name for name, field in fields.items() if not field.description]
    words = {silent[-1]: about} if silent else {}
    shape: Data = {}
    for name, field in fields.items():
        alias = field.validation_alias
        said = field.description or words.get(name, "")
        key = alias if isinstance(alias, str) else name
        shape[key] = _describe_type(field.annotation, said, depth)
    return shape


def _describe_type(kind: Any, about: str, depth: int) -> Any:
    """Return the shape of a value; raise TypeError for a type without one."""
    arguments = [each for each in get_args(kind) if each is not NoneType]
    origin = get_origin(kind)
    if origin in (Union, UnionType) and len(arguments) == 1:
        return _describe_type(arguments[0], about, depth)
    if origin in (list, tuple, set, frozenset):
        return [_describe_type(arguments[0], about, depth)]
    if origin is dict:
        return {"…": _describe_type(arguments[1], about, depth)}
    if origin is Literal:
        return " | ".join(map(str, arguments))
    if not isinstance(kind, type) or depth == 0:
        raise TypeError(kind)
    if issubclass(kind, BaseModel):
        return _describe_fields(kind, about, depth - 1)
    shapes = {str: "", datetime: TIME_SHAPE, date: DATE_SHAPE}
    shapes |= dict.fromkeys((int, float), "number") | {bool: "true or false"}
    if kind not in shapes:
        raise TypeError(kind)
    return ": ".join(filter(None, [shapes[kind], about]))


def parse_summary(schema: type[BaseModel], text: str) -> Data | None:
    """Return the reply as the schema's data, or None if it is anything else."""
    text = text.strip()
    fenced = FENCED.match(text)
    try:
        return dump_summary(schema.model_validate_json(fenced[1] if fenced else text))
    except ValueError:
        return None


def dump_summary(value: BaseModel) -> Data:
    """Return data that every JSON column accepts: no NaN, times as text."""
    return json.loads(value.model_dump_json())


def render_summary(structured: Mapping[str, Any]) -> str:
    """Render the data of a summary: a heading and a list for each field."""
    lines: list[str] = []
    texts = "\n".join(filter(None, map(_render_entry, structured.values())))
    known = CHINESE_HEADINGS if is_chinese(texts) else {}
    for name, value in structured.items():
        heading = f"{name.replace('_', ' ').capitalize()}:"
        if name in known:
            heading = f"{known[name]}："
        if not isinstance(value, (list, dict)):
            text = _render_entry(value)
            part = [f"{heading} {text}"] if text else []
        else:
            entries = [f"- {text}" for text in filter(None, _render_entries(value))]
            part = [heading, *entries] if entries else []
        if part and lines and lines[-1].startswith("- "):
            # In Markdown a line directly after a list belongs to it.
            lines.append("")
        lines += part
    return "\n".join(lines)


def is_chinese(text: str) -> bool:
    """Return whether the text has more Chinese characters than Latin words."""
    characters = sum("\u3400" <= char <= "\u9fff" for char in text)
    return characters > len(re.findall(r"[A-Za-z]+", text))


def _render_entries(value: list[Any] | Data) -> Iterator[str]:
    if isinstance(value, list):
        yield from map(_render_entry, value)
        return
    for name, each in value.items():
        if text := _render_entry(each):
            yield " ".join(f"{name}: {text}".split())


def _render_entry(value: Any) -> str:
    """Render a value in one line, or "" if it is blank.

    A line break could forge a heading.
    """
    if isinstance(value, list):
        text = ", ".join(filter(None, map(_render_entry, value)))
    elif isinstance(value, dict):
        text = _render_object(value)
    else:
        text = "" if value is None else str(value)
    text = " ".join(text.split())
    return "" if is_blank(text) else text


def _render_object(value: Data) -> str:
    """Render an object in one line.

    "[2026-05-07 10:30] Home: moved to Oslo (source: user)".
    """
    said = {name: _render_entry(each) for name, each in value.items()}
    times = [name for name, text in said.items() if TIME.fullmatch(text)]
    bare = ": ".join(said[name] for name in BARE if said.get(name))
    rest = "; ".join(
        f"{name}: {text}"
        for name, text in said.items()
        if text and name not in (*BARE, *times)
    )
    text = f"{bare} ({rest})" if bare and rest else bare or rest
    stamps = [" ".join(filter(None, TIME.fullmatch(said[n]).groups())) for n in times]
    # A time alone says nothing.
    return " ".join([*(f"[{stamp}]" for stamp in stamps), text]) if text else ""


def without_times(text: str) -> str:
    """Keep only the days of the entries: no message says its own time."""
    return STAMP.sub(r"[\1]", text)


def combine_summaries(parts: Sequence[Mapping[str, Any]]) -> Data:
    """Combine the data of consecutive summaries, oldest first.

    Lists are joined without repetitions; objects are combined; of single values the
    newest that is not blank counts.
    """
    combined: Data = {}
    for part in parts:
        for name, value in part.items():
            known = combined.get(name)
            if isinstance(known, list) and isinstance(value, list):
                combined[name] = known + [each for each in value if each not in known]
            elif isinstance(known, dict) and isinstance(value, dict):
                combined[name] = combine_summaries([known, value])
            elif name not in combined or _render_entry(value):
                combined[name] = value
    return combined
