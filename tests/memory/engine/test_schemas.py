import json
from datetime import date, datetime
from enum import Enum
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, create_model

from memory.engine.exceptions import PolicyError
from memory.engine.policy import Policy
from memory.engine.summaries.schemas import (
    SCHEMAS,
    GeneralOutline,
    TopicsOutline,
    combine_summaries,
    describe_schema,
    parse_summary,
    render_summary,
    schema_for,
    without_times,
)

SAID = {
    "facts": ["Ann pays 12."],
    "topics": [{"topic": "Tea", "text": "She likes it."}],
}


@pytest.mark.parametrize("schema", [*SCHEMAS.values(), TopicsOutline])
def test_schema_accepts_the_form_it_describes(schema):
    shape = json.loads(describe_schema(schema))
    assert list(shape) == list(schema.model_fields)
    assert parse_summary(schema, json.dumps(shape)) == shape


def test_reply_with_missing_fields_is_filled():
    structured = parse_summary(GeneralOutline, json.dumps(SAID))
    assert structured["facts"] == ["Ann pays 12."]
    assert structured["user_profile"] == []


def test_fenced_reply_is_parsed():
    assert (
        parse_summary(GeneralOutline, f"```json\n{json.dumps(SAID)}\n```") is not None
    )


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
def test_other_replies_are_plain_text(text):
    assert parse_summary(GeneralOutline, text) is None


def test_summary_is_rendered_with_headings_and_entries():
    text = render_summary(parse_summary(GeneralOutline, json.dumps(SAID)))
    assert text == "Topics:\n- Tea: She likes it.\n\nFacts:\n- Ann pays 12."


def test_a_summary_in_chinese_has_headings_in_chinese():
    said = {"user_profile": ["Lance，住在苏黎世"], "facts": ["预算 3200 欧元"]}
    text = render_summary(said)
    assert text == "用户信息：\n- Lance，住在苏黎世\n\n要点：\n- 预算 3200 欧元"
    assert render_summary({"plan": ["去京都"]}) == "Plan:\n- 去京都"


def test_entry_cannot_forge_a_heading():
    assert (
        render_summary({"facts": ["a\nTopics:\n- b", " "]}) == "Facts:\n- a Topics: - b"
    )


def test_profiles_select_their_schemas():
    for profile, schema in SCHEMAS.items():
        assert schema_for(Policy(profile=profile)) is schema
    assert schema_for(Policy(preset="topics", profile="project")) is TopicsOutline


class Mood(Enum):
    GOOD = "good"


class Fact(BaseModel):
    at: datetime
    text: str
    source: Literal["user", "tool"] = "user"


class Notes(BaseModel):
    user_info: str
    topics: list[str] = Field(description="what was discussed")
    key_facts: list[Fact]
    day: date | None = None
    count: int = 0
    names: dict[str, str] = {}


class Tree(BaseModel):
    text: str
    parts: list["Tree"] = []


NOTES = {
    "user_info": "Lance",
    "topics": ["Tea", "Oslo"],
    "key_facts": [{"at": "2026-05-07T10:30:00Z", "text": "He likes\ntea."}],
    "names": {"cat": "Mimi"},
    "count": 2,
}


def test_class_is_described_as_the_object_to_be_written():
    assert json.loads(describe_schema(Notes)) == {
        "user_info": "",
        "topics": ["what was discussed"],
        "key_facts": [{"at": "YYYY-MM-DDThh:mm", "text": "", "source": "user | tool"}],
        "day": "YYYY-MM-DD",
        "count": "number",
        "names": {"…": ""},
    }


@pytest.mark.parametrize(
    "schema", [Tree, create_model("A", mood=(Mood, ...)), create_model("B", x=(Any, 1))]
)
def test_other_classes_are_described_by_their_json_schema(schema):
    assert json.loads(describe_schema(schema)) == schema.model_json_schema()


def test_fields_are_named_by_their_aliases():
    schema = create_model("Named", text=(str, Field(validation_alias="words")))
    assert json.loads(describe_schema(schema)) == {"words": ""}
    assert parse_summary(schema, '{"words": "a"}') == {"text": "a"}


def test_the_data_of_a_class_is_plain_json():
    data = parse_summary(Notes, json.dumps(NOTES))
    assert data == json.loads(json.dumps(data))
    assert data["key_facts"][0]["at"] == "2026-05-07T10:30:00Z"
    assert data["key_facts"][0]["source"] == "user"
    schema = create_model("Number", x=(float, 0))
    assert parse_summary(schema, '{"x": NaN}') == {"x": None}


@pytest.mark.parametrize("change", [{"key_facts": [{"text": "x"}]}, {"topics": "Tea"}])
def test_data_that_the_class_rejects_is_text(change):
    assert parse_summary(Notes, json.dumps(NOTES | change)) is None


def test_every_kind_of_value_is_rendered():
    assert render_summary(parse_summary(Notes, json.dumps(NOTES))).splitlines() == [
        "User info: Lance",
        "Topics:",
        "- Tea",
        "- Oslo",
        "",
        "Key facts:",
        "- [2026-05-07 10:30] He likes tea. (source: user)",
        "",
        "Count: 2",
        "Names:",
        "- cat: Mimi",
    ]
    nested = {"a": {"name": "Ann", "likes": ["tea", {"text": "figs"}], "no": None}}
    assert (
        render_summary({"people": nested})
        == "People:\n- a: name: Ann; likes: tea, figs"
    )
    assert (
        render_summary({"facts": [{"at": "2026-05-07", "text": " "}], "x": None}) == ""
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda each: st.lists(each, max_size=3) | st.dictionaries(st.text(), each),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from(["name", "key_facts"]), JSON))
def test_data_cannot_forge_a_line(data):
    for line in filter(None, render_summary(data).splitlines()):
        assert line.startswith(("Name:", "Key facts:", "- "))
        assert line in ("Name:", "Key facts:") or len(line.split()) > 1


def test_days_are_checked_but_not_times():
    text = "- [2026-05-07 10:30] tea at [10:30]"
    assert without_times(text) == "- [2026-05-07] tea at [10:30]"


def test_data_of_all_levels_is_combined():
    first = {"facts": ["a", "b"], "name": "Ann", "at": {"home": "Oslo"}, "n": 1}
    second = {"facts": ["b", "c"], "name": " ", "at": {"work": "Bonn"}, "n": 2}
    assert combine_summaries([first, second]) == {
        "facts": ["a", "b", "c"],
        "name": "Ann",
        "at": {"home": "Oslo", "work": "Bonn"},
        "n": 2,
    }
    assert combine_summaries([]) == {}
    assert first["facts"] == ["a", "b"]


def test_policy_accepts_a_class_and_dumps_its_json_schema():
    policy = Policy(preset="topics", profile=Notes)
    assert schema_for(policy) is Notes
    dumped = json.loads(json.dumps(policy.dump()))
    assert dumped["profile"]["properties"].keys() == Notes.model_fields.keys()
    assert policy.digest() != Policy(preset="topics", profile=Fact).digest()
    with pytest.raises(PolicyError, match="profile"):
        Policy.load(dumped)


@pytest.mark.parametrize("wrong", [dict, Notes(**NOTES), "Notes", None, 1])
def test_policy_rejects_other_objects(wrong):
    with pytest.raises(PolicyError, match="profile: .*: expected one of general"):
        Policy(profile=wrong)
