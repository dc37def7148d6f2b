"""What a summary is made of, for several kinds of conversation.

A profile is a schema: its fields are the headings of the summary and tell the model
what to look for. A model that answers in plain text instead is understood as well.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, Field, ValidationError, model_validator

from .policy import Policy

FENCED = re.compile(r"^```(?:json)?\s*(\{.*\})\s*```$", re.DOTALL)


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


class General(Outline):
    user_profile: list[str] = Field(
        description="Who the user is: name, home, work, people, likes and dislikes."
    )
    topics: list[Topic] = Field(description="What was talked about.")
    facts: list[str] = Field(description="Names, numbers, dates, decisions, reasons.")
    action_items: list[str] = Field(
        description="What is still open, promised or planned."
    )


class CustomerService(Outline):
    customer: list[str] = Field(description="Name, contact, orders and products.")
    issues: list[str] = Field(description="What was reported, and since when.")
    solutions: list[str] = Field(description="What was tried or given, and the result.")
    pending: list[str] = Field(description="What is still to be done, and by whom.")
    facts: list[str] = Field(description="Other names, numbers and dates.")


class Tutoring(Outline):
    student: list[str] = Field(description="Who the student is, goals and level.")
    topics_covered: list[Topic] = Field(description="What was taught, and how far.")
    understanding: list[str] = Field(description="What the student has understood.")
    weak_areas: list[str] = Field(description="Mistakes, and what needs more work.")
    homework: list[str] = Field(description="What was set, and for when.")
    facts: list[str] = Field(description="Other names, numbers and dates.")


class Project(Outline):
    goals: list[str] = Field(description="What is to be achieved, and by when.")
    decisions: list[str] = Field(description="What was decided or rejected, and why.")
    action_items: list[str] = Field(description="Who does what, and by when.")
    blockers: list[str] = Field(description="What holds the work up.")
    artifacts: list[str] = Field(description="Files, links, versions and commands.")
    next_steps: list[str] = Field(description="What comes next.")
    facts: list[str] = Field(description="Other names, numbers and dates.")


class Topics(Outline):
    topics: list[Topic] = Field(
        description="One entry per topic; all that is known about it."
    )


SCHEMAS: dict[str, type[Outline]] = {
    "general": General,
    "customer_service": CustomerService,
    "tutoring": Tutoring,
    "project": Project,
}


def schema_for(policy: Policy) -> type[Outline]:
    return Topics if policy.strategy == "topics" else SCHEMAS[policy.profile]


def describe_schema(schema: type[Outline]) -> str:
    """The JSON schema for a prompt, without what only a program needs."""
    full = schema.model_json_schema()
    return json.dumps(_plain(full), ensure_ascii=False, separators=(",", ":"))


def parse(schema: type[Outline], text: str) -> dict[str, Any] | None:
    """The reply as the schema's data; None where it is anything else."""
    text = text.strip()
    fenced = FENCED.match(text)
    try:
        return schema.model_validate_json(fenced[1] if fenced else text).model_dump()
    except ValidationError:
        return None


def render(structured: dict[str, Any]) -> str:
    """The text of a summary from its data: a heading and a list for each field."""
    return "\n".join(_render_fields(structured))


def _render_fields(structured: dict[str, Any]) -> Iterator[str]:
    for name, entries in structured.items():
        lines = list(filter(None, map(_render_entry, entries)))
        if lines:
            yield f"{name.replace('_', ' ').capitalize()}:"
            yield from lines


def _render_entry(entry: str | dict[str, str]) -> str:
    if isinstance(entry, dict):
        entry = f"{entry['topic'].strip()}: {entry['text'].strip()}".strip(": ")
    # One entry is one line, so that a heading can not be forged by a line break.
    text = " ".join(entry.split())
    return f"- {text}" if text else ""


def _plain(schema: Any) -> Any:
    """Without titles and the descriptions of the classes."""
    if isinstance(schema, list):
        return [_plain(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    is_class = "properties" in schema
    dropped = {"title", "description"} if is_class else {"title"}
    return {
        key: {name: _plain(each) for name, each in value.items()}
        if key in ("properties", "$defs")
        else _plain(value)
        for key, value in schema.items()
        if key not in dropped
    }
