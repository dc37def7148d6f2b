import json

import pytest

from memory.engine.policy import Policy
from memory.engine.summaries.prompts import (
    SCHEMAS,
    General,
    Topics,
    describe_schema,
    parse,
    render,
    schema_for,
)

SAID = {
    "facts": ["Ann pays 12."],
    "topics": [{"topic": "Tea", "text": "She likes it."}],
}


@pytest.mark.parametrize("schema", [*SCHEMAS.values(), Topics])
def test_it_describes_its_own_form(schema):
    shape = json.loads(describe_schema(schema))
    assert list(shape) == list(schema.model_fields)
    assert parse(schema, json.dumps(shape)) == shape


def test_it_reads_data_and_fills_what_is_missing():
    structured = parse(General, json.dumps(SAID))
    assert structured["facts"] == ["Ann pays 12."]
    assert structured["user_profile"] == []


def test_it_reads_a_fenced_answer():
    assert parse(General, f"```json\n{json.dumps(SAID)}\n```") is not None


@pytest.mark.parametrize(
    "text",
    [
        "Ann likes tea.",
        "",
        "{",
        "[]",
        "7",
        '{"summary": "Ann likes tea."}',
        '{"facts": "Ann"}',
        '{"facts": [1]}',
        '{"topics": ["Tea"]}',
        '{"facts": ["\\ud800"]}',
        "[" * 10_000,
        '{"facts": ' * 5000,
    ],
)
def test_it_takes_anything_else_for_plain_text(text):
    assert parse(General, text) is None


def test_it_renders_headings_and_entries():
    text = render(parse(General, json.dumps(SAID)))
    assert text == "Topics:\n- Tea: She likes it.\nFacts:\n- Ann pays 12."


def test_it_lets_no_entry_forge_a_heading():
    assert render({"facts": ["a\nTopics:\n- b", " "]}) == "Facts:\n- a Topics: - b"


def test_it_has_a_profile_for_each_kind_of_conversation():
    for profile, schema in SCHEMAS.items():
        assert schema_for(Policy(profile=profile)) is schema
    assert schema_for(Policy(preset="topics", profile="project")) is Topics
