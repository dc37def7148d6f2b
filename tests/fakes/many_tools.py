"""Two hundred tools, some of which say what they take in a form that providers refuse;
for the setting TOOLS.
"""

from typing import Any

from langchain_core.tools import StructuredTool

COUNT = 200
PATHS = tuple(f"{__name__}.tool_{number}" for number in range(COUNT))
TEXT = {"type": "string"}
PART = {"type": "object", "properties": {"name": {"type": ["string", "null"]}}}


def an_object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


SCHEMAS = (
    an_object(words=TEXT),
    {**an_object(a=TEXT, b=TEXT), "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
    {"type": "object", "title": "Bare"},
    an_object(rows={"type": "array"}),
    {"$defs": {"P": PART}, **an_object(part={"$ref": "#/$defs/P"})},
    an_object(value={"description": "Any value"}, kind={"const": "x"}),
    {**an_object(), "oneOf": [an_object(c=TEXT), an_object(d=TEXT)]},
    an_object(code={"type": "string", "pattern": "[a-z]+"}),
    {**an_object(), "allOf": [{**an_object(e=TEXT), "required": ["e"]}]},
    {"$defs": {"N": an_object(next={"$ref": "#/$defs/N"})}, "$ref": "#/$defs/N"},
)
NAMES = ("look.up", "look_up", "2nd tool", "天气", "x" * 70, "x" * 71, "ls")


def name_of(number: int) -> str:
    return NAMES[number] if number < len(NAMES) else f"tool_{number}"


def __getattr__(name: str) -> StructuredTool:
    start, _, number = name.partition("_")
    if start != "tool" or not number.isdigit():
        raise AttributeError(name)

    async def run(**arguments: Any) -> str:
        return f"{name}: done"

    return StructuredTool(
        name=name_of(int(number)),
        description="A tool.",
        args_schema=SCHEMAS[int(number) % len(SCHEMAS)],
        coroutine=run,
    )
