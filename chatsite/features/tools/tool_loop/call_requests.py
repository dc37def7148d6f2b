"""The calls that a model asks for, read from the chunks of its reply.

None of it is trusted: names, ids and arguments are whatever a server has sent.
"""

import json
import re
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages.tool import ToolCallChunk
from langchain_core.utils.json import parse_partial_json

from chatsite.llm.streaming import clean_json
from memory.engine.tools.call_forms import bound_extras, plain_name

CALL_ID = re.compile(r"[\x21-\x7e]{1,100}")
# Of what a server puts beside the text of a reply.
COME_BACK = ("reasoning_content", "reasoning_details", "extra_content")
# Of arguments that were cut off, to be completed: that can take as many tries.
MAX_PARTIAL = 1_000
# Calls of a reply that was cut off, which are kept for people to see. None of them is
# run, and other people wait while they are stored.
MAX_CUT_OFF = 8


@dataclass(frozen=True, slots=True)
class CallRequest:
    """One call of a reply.

    `error` says why it can't be run: "bad_arguments" if they were no JSON object;
    `arguments` is then empty.
    """

    call_id: str
    name: str
    arguments: dict[str, Any]
    error: str = ""
    # The additions of its provider.
    extras: dict[str, Any] = field(default_factory=dict)

    def to_langchain(self) -> dict[str, Any]:
        return {"name": self.name, "args": self.arguments, "id": self.call_id}


def read(
    chunks: Iterable[ToolCallChunk], limit: int, *, is_cut: bool = False
) -> list[CallRequest]:
    """Return the first `limit` calls, each with an id of its own.

    Of a reply that was cut off, return few calls, with the arguments that have come:
    such calls are shown and never run.
    """
    limit = min(limit, MAX_CUT_OFF) if is_cut else limit
    asked: dict[str, CallRequest] = {}
    for chunk in list(chunks)[:limit]:
        call_id = str(chunk.get("id") or "")
        if not CALL_ID.fullmatch(call_id) or call_id in asked:
            call_id = f"call_{uuid.uuid4().hex}"
        name = plain_name(str(chunk.get("name") or ""))
        try:
            arguments, error = _read_arguments(chunk.get("args") or "", is_cut), ""
        except (ValueError, RecursionError):
            arguments, error = {}, "bad_arguments"
        extras = dict(chunk.get("extras") or {})
        asked[call_id] = CallRequest(call_id, name, arguments, error, extras)
    return list(asked.values())


def read_extras(
    provider: str, beside: Mapping[str, Any], asked: Iterable[CallRequest]
) -> dict[str, Any]:
    """Return the extras that go back to the provider with these calls, as stored."""
    message = {name: beside[name] for name in COME_BACK if beside.get(name)}
    calls = {each.call_id: each.extras for each in asked if each.extras}
    try:
        found = clean_json({"message": message, "calls": calls})
    except ValueError:
        return {}
    found = {name: values for name, values in found.items() if values}
    return bound_extras({"provider": provider, **found} if found else {})


def _read_arguments(text: str, is_cut: bool) -> dict[str, Any]:
    """Return the arguments. Raises ValueError for anything but one JSON object."""
    if not text.strip():
        return {}  # how some call a function without parameters
    if is_cut and len(text) <= MAX_PARTIAL:
        value = clean_json(parse_partial_json(text))
    else:
        value = clean_json(json.loads(text, parse_constant=_refuse))
    if not isinstance(value, dict):
        raise ValueError("no object")
    return value


def _refuse(word: str) -> None:
    raise ValueError(word)  # NaN, Infinity
