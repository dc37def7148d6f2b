"""Tools in the form that providers take.

The schemas of a server's tools are rewritten where they have another form of JSON
Schema. The tool itself checks its arguments as ever.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import islice
from typing import Any

from memory.engine.compose import digest_wire

Schema = dict[str, Any]

# OpenAI and most others refuse a request with more.
MOST_TOOLS = 128
# At the top of a schema no provider takes them: there it is one object.
AT_TOP = ("anyOf", "oneOf", "allOf")
NOT_AT_TOP = (*AT_TOP, "enum", "const", "not", "if", "then", "else", "dependentSchemas")
# What tells a validator of JSON Schema where it is.
PLACES = ("$schema", "$id", "$anchor", "$comment", "$defs", "definitions")
# Schemas of which each value is one, a list of them, or a dictionary.
ONE = ("items", "additionalProperties", "not", "contains", "propertyNames")
LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
NAMED = ("properties", "patternProperties")
# Any value at all: some refuse a schema without a type.
ANY = [{"type": kind} for kind in ("string", "number", "boolean", "object")]
MAX_PARTS, MAX_CHARS = 2_000, 40_000
# Schemas that are kept as they were fitted, of so many characters each at most.
MOST_KEPT, MOST_KEPT_CHARS = 512, 8_192
# What a schema that can't be sent raises.
UNFIT = (ValueError, TypeError, AttributeError, RecursionError)


@dataclass(frozen=True, slots=True)
class FittedTools:
    """The tools that a request can offer, and the names of those that it can't."""

    schemas: tuple[Schema, ...]
    left_out: tuple[str, ...] = ()


def fit_tools(
    tools: Sequence[Schema],
    *,
    most: int = MOST_TOOLS,
    refused: frozenset[str] = frozenset(),
) -> FittedTools:
    """Return the tools that a request can offer.

    `refused`: the digests of tools that the model's provider has refused.
    """
    fitted = tuple(islice(_fit_all(tools, refused), most))
    offered = {_name_tool(each) for each in fitted}
    names = (_name_tool(each) for each in tools)
    return FittedTools(fitted, tuple(name for name in names if name not in offered))


def _fit_all(tools: Sequence[Schema], refused: frozenset[str]) -> Iterator[Schema]:
    for tool in tools:
        function = tool["function"]
        try:
            text = json.dumps(function.get("parameters") or {})
            is_short = len(text) <= MOST_KEPT_CHARS
            parameters = (_fit_known_text if is_short else _fit_text)(text)
        except UNFIT:
            continue
        if parameters is None:
            continue
        fitted = {**tool, "function": {**function, "parameters": parameters}}
        if not refused or digest_tool(fitted) not in refused:
            yield fitted


def _fit_text(text: str) -> Schema | None:
    """Return a schema that was written as JSON as it can be sent, or None."""
    try:
        return fit_schema(json.loads(text))
    except UNFIT:
        return None


# Requests offer the same tools again and again, and fitting takes ten times as long as
# writing them.
_fit_known_text = lru_cache(maxsize=MOST_KEPT)(_fit_text)


def digest_tool(tool: Schema) -> str:
    return digest_wire([tool])


def _name_tool(tool: Schema) -> str:
    return str(tool["function"]["name"])


def fit_schema(schema: Schema) -> Schema:
    """Return the schema of a function's arguments as one object with properties.

    It has no references. A schema that fits stays as it is. Raise ValueError where it
    is too deep or too long to be sent.
    """
    fitted = _fit_top(_Fitter(schema).fit(schema))
    if fitted != schema and len(json.dumps(fitted)) > MAX_CHARS:
        raise ValueError("too long")
    return fitted


def _fit_top(schema: Schema) -> Schema:
    """Return alternatives at the top as properties that all may be there."""
    rest = {name: schema[name] for name in schema if name not in NOT_AT_TOP}
    rest["properties"] = dict(rest.get("properties") or {})
    required = list(rest.get("required") or ())
    for kind in AT_TOP:
        parts = [_fit_top(each) for each in schema.get(kind) or ()]
        for part in parts:
            for name, value in part["properties"].items():
                rest["properties"].setdefault(name, value)
        wanted = [set(part.get("required") or ()) for part in parts]
        if wanted:
            join = set.union if kind == "allOf" else set.intersection
            required += sorted(reduce(join, wanted) - set(required))
    rest["type"] = "object"
    rest.pop("required", None)
    known = [name for name in required if name in rest["properties"]]
    return rest | ({"required": known} if known or schema.get("required") == [] else {})


class _Fitter:
    """A writer of schemas without references, in which each value has a type."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        # References can make very much of very little.
        self._left = MAX_PARTS
        self._inside: list[Any] = []

    def fit(self, schema: Any) -> Schema:
        self._left -= 1
        if self._left < 0:
            raise ValueError("too large")
        if not isinstance(schema, dict):
            return {"anyOf": ANY}
        if "$ref" in schema:
            return self._follow(schema["$ref"], schema)
        fitted = {name: schema[name] for name in schema if name not in PLACES}
        for name, value in fitted.items():
            if name in ONE and isinstance(value, dict):
                fitted[name] = self._fit_part(value)
            elif name in LISTS:
                fitted[name] = [self._fit_part(each) for each in value]
            elif name in NAMED:
                fitted[name] = {
                    key: self._fit_part(each) for key, each in value.items()
                }
        return fitted

    def _fit_part(self, schema: Any) -> Schema:
        return _give_type(self.fit(schema))

    def _follow(self, ref: Any, schema: Schema) -> Schema:
        """Return the schema that is referred to.

        If a schema contains itself, the inner one accepts any fields.
        """
        if ref in self._inside:
            return {"type": "object", "properties": {}}
        self._inside.append(ref)
        beside = {name: schema[name] for name in schema if name != "$ref"}
        fitted = self.fit({**_find_referred(self._root, ref), **beside})
        self._inside.pop()
        return fitted


def _give_type(schema: Schema) -> Schema:
    if "const" in schema:
        schema = {**schema, "enum": [schema["const"]]}
        del schema["const"]
    kind = schema.get("type")
    if isinstance(kind, list):
        rest = {name: schema[name] for name in schema if name not in ("type", "title")}
        told = {
            name: rest.pop(name) for name in ("description", "default") if name in rest
        }
        kinds = [
            {"type": each} if each == "null" else {**rest, "type": each}
            for each in kind
        ]
        return {**told, "anyOf": [_give_type(each) for each in kinds]}
    if kind is None and not any(name in schema for name in LISTS):
        kind = _infer_type(schema)
        schema = {**schema, "type": kind} if kind else {**schema, "anyOf": ANY}
    if kind == "array" and not schema.get("items") and "prefixItems" not in schema:
        schema = {**schema, "items": {"type": "string"}}
    # llama.cpp makes a grammar of whole lines only.
    pattern = schema.get("pattern")
    if isinstance(pattern, str) and not (pattern[:1] == "^" and pattern[-1:] == "$"):
        schema = {name: schema[name] for name in schema if name != "pattern"}
    return schema


def _infer_type(schema: Mapping[str, Any]) -> str:
    if "properties" in schema or "additionalProperties" in schema:
        return "object"
    if "items" in schema or "prefixItems" in schema:
        return "array"
    kinds = {type(each) for each in schema.get("enum") or ()}
    names = {str: "string", bool: "boolean", int: "integer", float: "number"}
    return names.get(kinds.pop(), "") if len(kinds) == 1 else ""


def _find_referred(root: Schema, ref: Any) -> Schema:
    """Return the part that a reference inside the schema names.

    Raise ValueError for any other reference.
    """
    if not isinstance(ref, str) or not ref.startswith("#"):
        raise ValueError("refers to another document")
    found: Any = root
    for step in filter(None, ref[1:].split("/")):
        name = step.replace("~1", "/").replace("~0", "~")
        found = found[int(name)] if isinstance(found, list) else found.get(name)
    if not isinstance(found, dict):
        raise ValueError("refers to nothing")
    return found
