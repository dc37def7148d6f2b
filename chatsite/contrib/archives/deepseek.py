"""The exports of DeepSeek: trees of messages, each in fragments."""

from collections.abc import Iterator
from typing import Any

from chatsite.features.importing.files.draft import (
    Draft,
    DraftMessage,
    from_talk,
    read_time,
)
from chatsite.features.importing.files.reading import SITES
from chatsite.features.importing.files.remainder import BRANCH, Remainder

from . import tool_parts
from .foreign import make_source, open_nodes
from .tool_parts import as_list, read_string


def read_deepseek(item: dict[str, Any]) -> Draft:
    site, rest = SITES["deepseek"], Remainder()
    messages, others = open_nodes(item, site)
    rest.count_words([[_fragments_of(m), _name_uploads(m)] for m in others], BRANCH)
    talk = (
        s for n, each in enumerate(messages) for s in _read_fragments(each, n, rest)
    )
    source = make_source("deepseek", item.get("id"))
    return from_talk(source, read_string(item.get("title")), talk, site, rest)


def _fragments_of(message: dict[str, Any]) -> list[Any]:
    found = as_list(message.get("fragments"))
    return [each for each in found if isinstance(each, dict)]


def _read_fragments(
    message: dict[str, Any], number: int, rest: Remainder
) -> Iterator[DraftMessage]:
    at = read_time(message.get("inserted_at"))
    model = read_string(message.get("model"))[:60]
    fragments = _fragments_of(message)
    is_asked = any(each.get("type") == "REQUEST" for each in fragments)
    role = "user" if is_asked else "assistant"
    for place, each in enumerate(fragments):
        said = DraftMessage(role, tool_parts.read_words(each), at, model)
        kind = each.get("type")
        if kind == "THINK":
            said = DraftMessage("assistant", "", at, model, reasoning=said.text)
        elif kind == "SEARCH":
            asked = f"call-{number}-{place}"
            call = tool_parts.make_call(asked, "search", {})
            yield DraftMessage("assistant", "", at, model, calls=[call])
            said = DraftMessage("tool", said.text, at, answers=asked)
        elif kind not in ("REQUEST", "RESPONSE"):
            rest.count_kind(kind)
        yield said
    names = map(tool_parts.name_file, _name_uploads(message))
    yield DraftMessage(role, "\n\n".join(names), at, model)


def _name_uploads(message: dict[str, Any]) -> list[Any]:
    files = (each for each in as_list(message.get("files")) if isinstance(each, dict))
    return [each.get("file_name") or each.get("name") for each in files]
