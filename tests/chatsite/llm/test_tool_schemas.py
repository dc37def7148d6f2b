"""Schemas of tools, in the form that providers accept."""

import json
import time

import pytest

from chatsite.llm import tool_schemas
from chatsite.llm.tool_schemas import digest_tool, fit_schema, fit_tools
from tests.fakes import many_tools, provider_rules

TEXT = {"type": "string"}


def make(name, schema=None):
    function = {"name": name, "description": "d", "parameters": schema or {}}
    return {"type": "function", "function": function}


def an_object(**properties):
    return {"type": "object", "properties": properties}


def test_schema_that_fits_stays_as_it_is():
    schema = an_object(a={**TEXT, "pattern": "^x$"}, b={"type": "array", "items": TEXT})
    assert fit_schema(schema) == schema


@pytest.mark.parametrize(
    ("schema", "fitted"),
    [
        ({}, an_object()),
        ({"type": "object"}, an_object()),
        (
            an_object(rows={"type": "array"}),
            an_object(rows={"type": "array", "items": TEXT}),
        ),
        (
            an_object(a={"type": ["string", "null"], "description": "d"}),
            an_object(a={"description": "d", "anyOf": [TEXT, {"type": "null"}]}),
        ),
        (an_object(a={"const": 3}), an_object(a={"enum": [3], "type": "integer"})),
        (an_object(a={"enum": ["x"]}), an_object(a={"enum": ["x"], **TEXT})),
        (an_object(a={"properties": {}}), an_object(a=an_object())),
        (an_object(a={**TEXT, "pattern": "x"}), an_object(a=TEXT)),
        (
            {"anyOf": [{"required": ["a"]}, {"required": ["b"]}], **an_object(a=TEXT)},
            an_object(a=TEXT),
        ),
        (
            {
                "oneOf": [
                    {**an_object(a=TEXT, k=TEXT), "required": ["a", "k"]},
                    {**an_object(b=TEXT, k=TEXT), "required": ["b", "k"]},
                ]
            },
            {**an_object(a=TEXT, k=TEXT, b=TEXT), "required": ["k"]},
        ),
        (
            {"allOf": [{**an_object(a=TEXT), "required": ["a"]}, an_object(b=TEXT)]},
            {**an_object(a=TEXT, b=TEXT), "required": ["a"]},
        ),
        (
            {"$defs": {"P": an_object(q=TEXT)}, **an_object(p={"$ref": "#/$defs/P"})},
            an_object(p=an_object(q=TEXT)),
        ),
        (
            {"$ref": "#/definitions/P", "definitions": {"P": an_object(q=TEXT)}},
            an_object(q=TEXT),
        ),
    ],
)
def test_schema_is_put_into_the_form_of_providers(schema, fitted):
    assert fit_schema(schema) == fitted


@pytest.mark.parametrize("schema", many_tools.SCHEMAS)
def test_schema_is_taken_by_every_provider(schema):
    body = {"messages": [], "tools": [make("look", fit_schema(schema))]}
    for rule in (
        *(provider_rules.read_top, provider_rules.read_anthropic_top),
        *(provider_rules.read_gemini_schemas, provider_rules.make_grammar),
    ):
        assert list(rule(body)) == []


def test_schema_inside_itself_ends():
    node = an_object(next={"$ref": "#/$defs/N"}, all={"$ref": "#"})
    fitted = fit_schema({"$defs": {"N": node}, **an_object(n={"$ref": "#/$defs/N"})})
    assert "$ref" not in str(fitted)


@pytest.mark.parametrize(
    "schema",
    [
        # Each names the one before ten times.
        {
            "$defs": {
                str(n): {"anyOf": [{"$ref": f"#/$defs/{n - 1}"}] * 10} if n else TEXT
                for n in range(12)
            },
            **an_object(a={"$ref": "#/$defs/11"}),
        },
        an_object(a={"$ref": "https://example.org/schema.json"}),
        an_object(a={"$ref": "#/$defs/none"}),
        {"type": "object", "properties": 7},
    ],
)
def test_tool_with_a_schema_that_can_not_be_sent_is_left_out(schema):
    began = time.monotonic()
    fitted = fit_tools([make("good"), make("bad", schema)])
    assert [each["function"]["name"] for each in fitted.schemas] == ["good"]
    assert fitted.left_out == ("bad",)
    assert time.monotonic() - began < 2


def test_tools_over_the_limit_are_named():
    tools = [make(f"t{n}") for n in range(130)]
    assert fit_tools(tools).left_out == ("t128", "t129")
    assert len(fit_tools(tools, most=3).schemas) == 3


def test_tool_that_was_refused_is_left_out():
    [first, second] = fit_tools([make("a"), make("b")]).schemas
    fitted = fit_tools([make("a"), make("b")], refused=frozenset({digest_tool(first)}))
    assert (fitted.schemas, fitted.left_out) == ((second,), ("a",))


def test_schemas_are_fitted_once_for_all_requests(monkeypatch):
    fields = {f"field_{n}": {"type": ["string", "null"]} for n in range(150)}
    endless = {"$defs": {}, **an_object(n={"$ref": "https://elsewhere.example"})}
    tools = [make(f"t{n}", an_object(**fields, **{f"own_{n}": {}})) for n in range(128)]
    tools.append(make("bad", endless))
    walked, fit = [], tool_schemas._Fitter.fit
    monkeypatch.setattr(
        tool_schemas._Fitter,
        "fit",
        lambda self, schema: walked.append(1) or fit(self, schema),
    )
    tool_schemas._fit_known_text.cache_clear()
    first = fit_tools(tools)
    assert len(walked) > 128 * 150
    walked.clear()
    assert fit_tools(json.loads(json.dumps(tools))) == first
    assert walked == []
    assert first.left_out == ("bad",)


def test_a_long_schema_is_fitted_but_not_kept():
    tool_schemas._fit_known_text.cache_clear()
    fields = {f"field_{n}": {"type": "string"} for n in range(1_000)}
    [fitted] = fit_tools([make("long", an_object(**fields))]).schemas
    assert len(fitted["function"]["parameters"]["properties"]) == 1_000
    assert tool_schemas._fit_known_text.cache_info().currsize == 0
