"""The form of the memory settings: fields over a preset, and JSON for the rest."""

import pytest

from chatsite.pages.forms import PolicyForm
from memory import transcript
from memory.engine.policy import PRESETS, Policy

PRESET = {"preset": "langgraph"}


def sent_again(stored):
    """Return what is stored if a user opens the form and sends it as it is."""
    form = PolicyForm(initial=PolicyForm.read_initial(stored))
    data = {field.html_name: field.value() for field in form}
    shown = PolicyForm({name: value for name, value in data.items() if value})
    assert shown.is_valid(), shown.errors
    return shown.cleaned_data["policy"]


def sent(**values):
    return PolicyForm({**PRESET, "trigger_kind": "tokens", **values})


@pytest.mark.parametrize(
    "own",
    [
        {},
        {"trigger": ["topic", 0.7], "keep": ["fraction", 0.5]},
        {"trigger": ["messages", 9], "strategy": "window"},
        {"trigger": ["important", 2], "important": ["(?i)remember", " budget|预算 "]},
        {"important": ["two words", r"\d{4}"], "strategy": "topics"},
        # What no field can hold is left to the JSON.
        {"trigger": [["tokens", 9000], {"turns": 9, "topic": 0.5}]},
        {"trigger": {"tokens": 9000}, "important": []},
        {"trigger": None, "recall_tokens": 0, "enabled": False},
        {"important": ["a\nb"], "max_summary_tokens": 77, "recall_tokens": 10},
    ],
    ids=str,
)
def test_unchanged_form_changes_nothing(own):
    again = sent_again({**PRESET, **own})
    assert Policy.load(again) == Policy.load({**PRESET, **own})
    assert again.keys() == {*PRESET, *own}


@pytest.mark.parametrize("preset", PRESETS)
def test_the_fields_of_a_preset_are_empty(preset):
    form = PolicyForm(initial=PolicyForm.read_initial({"preset": preset}))
    assert not form.has_details
    assert sent_again({"preset": preset}) == {"preset": preset}


@pytest.mark.django_db
def test_settings_over_the_preset_are_counted_until_they_are_dropped(alice):
    own = {"keep": ["turns", 3], "recall_tokens": 0, "fan_in": 5}
    own |= {"max_summary_tokens": 77}
    made = transcript.create_conversation(alice, policy={**PRESET, **own})
    assert PolicyForm.for_conversation(made).overriding == 4
    dropped = PolicyForm.for_conversation(made, preset="guide")
    assert dropped.overriding == 0
    assert dropped.initial == {"preset": "guide", "seen": made.policy}


def test_fields_become_settings():
    form = sent(
        **{"trigger_size": "0.7", "trigger_kind": "topic"},
        **{"keep_size": "3", "keep_kind": "turns", "strategy": "window"},
        important="remember\r\n\r\nbudget",
    )
    assert form.is_valid()
    assert form.cleaned_data["policy"] == {
        **PRESET,
        "trigger": ["topic", 0.7],
        "keep": ["turns", 3],
        "strategy": "window",
        "important": ["remember", "budget"],
    }


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (
            {"trigger_size": "2", "trigger_kind": "topic"},
            "topic 2.0: expected a number",
        ),
        ({"trigger_size": "2.5"}, "2.5 tokens: expected a whole number"),
        ({"trigger_size": "2", "trigger_kind": "important"}, "expected a pattern"),
        ({"trigger_size": "2", "trigger_kind": "words"}, "not one of the available"),
        ({"trigger_size": "x"}, "Enter a number"),
        ({"strategy": "clever"}, "not one of the available"),
        ({"important": "(a+)+"}, "no group may be repeated"),
        ({"important": "a", "overrides": '{"important": ["b"]}'}, "Set twice"),
        ({"overrides": "[1]"}, "must be a JSON object"),
    ],
    ids=str,
)
def test_errors_are_shown_at_a_visible_field(values, said):
    form = sent(**values)
    assert not form.is_valid()
    assert said in str(form.errors)
    named = {name.replace("_kind", "_size") for name in form.errors} - {"__all__"}
    assert named <= set(form.DETAILS)
    assert form.has_details


@pytest.mark.parametrize("stored", [[], "layered", 7, {"strategy": ["x"]}, {"keep": 3}])
def test_broken_settings_are_shown_as_they_are(stored):
    shown = PolicyForm.read_initial(stored)
    assert shown["overrides"] == stored


def test_three_presets_are_chosen_and_others_are_for_comparison():
    *own, (others, compared) = PolicyForm().fields["preset"].choices
    assert [name for name, _ in own] == ["layered", "guide", "topics"]
    assert others == "Others (for comparison)"
    assert {*PRESETS} == {name for name, _ in (*own, *compared)}
