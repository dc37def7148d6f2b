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
from .tool_parts import list_dicts, read_string


def read_deepseek(item: dict[str, Any]) -> Draft:
    site, rest = SITES["deepseek"], Remainder()
    messages, others = open_nodes(item, site)
    unread = [[list_dicts(m.get("fragments")), _name_uploads(m)] for m in others]
    rest.count_words(unread, BRANCH)
    talk = (
        s for n, each in enumerate(messages) for s in _read_fragments(each, n, rest)
    )
    source = make_source("deepseek", item.get("id"))
    return from_talk(source, read_string(item.get("title")), talk, site, rest)


def _read_fragments(
    message: dict[str, Any], number: int, rest: Remainder
) -> Iterator[DraftMessage]:
    at = read_time(message.get("inserted_at"))
    model = read_string(message.get("model"))[:60]
    fragments = list_dicts(message.get("fragments"))
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
    files = list_dicts(message.get("files"))
    return [each.get("file_name") or each.get("name") for each in files]
