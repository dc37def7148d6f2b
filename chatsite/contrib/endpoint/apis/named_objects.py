"""Objects that a body names by id instead of sending them.

Examples are a file, a stored conversation and a container. All users of this site share
one account at the provider, so such an id could be another user's.

The items of a reply have ids, too: a call, what was said aloud, a file that code has
made. Clients send them again as they got them, they are not given to other users, and
no list has them: they are passed on. Only a container is not, as a provider continues
its work in it.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

# Ids of tools that the provider runs, and of what it stores for them.
IDS = frozenset(
    {
        *("file_id", "file_ids", "vector_store_id", "vector_store_ids"),
        *("container", "container_id", "skill_id", "connector_id"),
    }
)
# Fields of an item about tools: those that were found, and where one runs.
OF_TOOLS = ("tools", "environment", "container_id")
# The end of the types of files that Anthropic's code execution has made.
MADE = "code_execution_output"
OF_TEXT = frozenset({"role", "content", "type"})
OF_ITEMS = frozenset({"output", *OF_TOOLS})
OF_PARTS = frozenset({"content", "file", "source"})
LOOKED_INTO = IDS | OF_TEXT | OF_ITEMS | OF_PARTS | {"id", "skills"}
LOOKED_INTO |= {"previous_message_id"}
# Fields in which a tool describes its arguments: names there are not ids.
TAKEN = frozenset(
    {
        *("parameters", "input_schema", "output_schema", "input_examples"),
        *("format", "headers"),
    }
)


def find_named_object(api: str, body: Mapping[str, Any], first: int = 0) -> str:
    """Return the first field that has such an id, or "".

    Messages before `first` are not checked.
    """
    return next(_list_fields(api, body, first), "")


def _list_fields(api: str, body: Mapping[str, Any], first: int) -> Iterator[str]:
    if api == "responses":
        yield from (name for name in ("conversation", "prompt") if body.get(name))
    elif api == "messages":
        yield from _list_of_container(body.get("container"))
        if isinstance(thread := body.get("thread"), dict):
            yield from _list_of_spellings(thread)
    yield from _list_of_tools(body.get("tools"))
    said = body.get("input" if api == "responses" else "messages")
    for item in said[first:] if isinstance(said, list) else ():
        if isinstance(item, dict) and not _is_text(item):
            yield from _list_of_parts(item)
            # Few items have any of these.
            if not OF_ITEMS.isdisjoint(item):
                yield from _list_of_parts(item.get("output"))
                yield from _list_of_tools({name: item.get(name) for name in OF_TOOLS})


def _list_of_spellings(part: Mapping[str, Any]) -> Iterable[str]:
    """Return names that a reader which ignores case would accept."""
    names = "".join(part)
    if names.isascii() and names.islower():
        return ()
    return [name for name in part if has_other_case(name, LOOKED_INTO)]


def _is_text(item: Mapping[str, Any]) -> bool:
    """Return whether a message is only text, as most are."""
    return OF_TEXT.issuperset(item) and isinstance(item.get("content"), str)


def _list_of_container(container: object) -> Iterator[str]:
    if not isinstance(container, dict):
        yield from ("container",) if container else ()
        return
    yield from _list_of_spellings(container)
    if container.get("id"):
        yield "container"
    skills = container.get("skills")
    for skill in skills if isinstance(skills, list) else ():
        if isinstance(skill, dict):
            yield from _list_of_spellings(skill)
        if not isinstance(skill, dict) or skill.get("type") != "anthropic":
            yield "skill_id"


def _list_of_tools(value: object) -> Iterator[str]:
    if isinstance(value, list):
        for each in value:
            yield from _list_of_tools(each)
    if isinstance(value, dict):
        for name, inner in value.items():
            # A container with a description is a new one.
            is_described = name == "container" and isinstance(inner, dict)
            if name.casefold() in IDS and inner and not is_described:
                yield name
            elif name not in TAKEN:
                yield from _list_of_tools(inner)


def _list_of_parts(parts: object, *, can_be_made: bool = True) -> Iterator[str]:
    """Yield fields with ids of parts, also in tool results and documents."""
    if isinstance(parts, dict):
        parts = [parts]
    for part in parts if isinstance(parts, list) else ():
        if not isinstance(part, dict):
            continue
        yield from _list_of_spellings(part)
        is_made = can_be_made and str(part.get("type")).endswith(MADE)
        if part.get("file_id") and not is_made:
            yield "file_id"
        for name in OF_PARTS.intersection(part):
            yield from _list_of_parts(part[name], can_be_made=name == "content")


def has_other_case(name: str, read: frozenset[str]) -> bool:
    """Return whether readers that ignore case take it for one of `read`."""
    return name not in read and name.casefold() in read
