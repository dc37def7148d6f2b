import json

import pytest

from memory.engine.exceptions import EngineError, PolicyError
from memory.engine.policy import LABELS, PRESETS, Policy, list_choices


@pytest.mark.parametrize("preset", PRESETS)
def test_policy_loads_what_it_dumped(preset):
    policy = Policy.load({"preset": preset})
    stored = json.loads(json.dumps(policy.dump()))
    assert Policy.load(stored) == policy
    assert Policy.load(stored).digest() == policy.digest()


def test_policy_loads_a_mixed_trigger():
    trigger = [("tokens", 9000), {"messages": 10, "fraction": 0.5}, ("idle", 60)]
    policy = Policy(trigger=trigger)
    assert policy.trigger == (
        (("tokens", 9000),),
        (("messages", 10), ("fraction", 0.5)),
        (("idle", 60),),
    )
    assert Policy.load(policy.dump()) == policy


def test_policy_is_layered_by_default():
    assert Policy.load({}) == Policy() == Policy(preset="layered")
    assert Policy().trigger == ((("tokens", 4000),),)
    assert Policy().adaptive
    # Who says at which size gets it at that size.
    assert not Policy(trigger=("tokens", 6000)).adaptive
    assert not Policy(keep=("tokens", 500)).adaptive
    assert Policy().keep == ("tokens", 1000)


def test_policy_overrides_a_preset_in_part():
    policy = Policy.load({"preset": "langgraph", "keep": ["messages", 4]})
    assert policy.strategy == "running"
    assert policy.trigger == ((("messages", 7),),)
    assert policy.keep == ("messages", 4)


@pytest.mark.parametrize("trigger", [None, [], ()])
def test_policy_accepts_an_empty_trigger(trigger):
    assert Policy(trigger=trigger).trigger == ()


def test_policy_copies_its_arguments():
    trigger = [{"messages": 10}]
    policy = Policy(trigger=trigger)
    trigger[0]["messages"] = 99
    trigger.append(("tokens", 5000))
    assert policy.trigger == ((("messages", 10),),)


@pytest.mark.parametrize(
    "trigger",
    [
        ("fraction", 0),
        ("fraction", 1.5),
        ("fraction", float("nan")),
        ("fraction", True),
        ("tokens", 0),
        ("messages", -5),
        ("tokens", True),
        ("tokens", 1000.5),
        ("tokens", 1000.0),
        ("tokens", "10"),
        ("tokens", None),
        ("tokens", 10**400),
        ("words", 10),
        ("tokens",),
        {},
        [{}],
        [[]],
        "tokens",
        7,
        [7],
        {"tokens": 5000, "words": 3},
    ],
)
def test_policy_rejects_a_wrong_trigger(trigger):
    with pytest.raises(PolicyError, match="trigger: .*expected"):
        Policy(trigger=trigger)


@pytest.mark.parametrize(
    "keep", [None, [], ("age", 5), ("messages", 0), ("fraction", 2), {"messages": 2}]
)
def test_policy_rejects_a_wrong_keep(keep):
    with pytest.raises(PolicyError, match="keep: .*expected"):
        Policy(keep=keep)


@pytest.mark.parametrize(
    "wrong",
    [
        {"strategy": "clever"},
        {"preset": "best"},
        {"preset": None},
        {"preset": ["langgraph"]},
        {"unknown": 1},
        {"enabled": 1},
        {"max_summary_tokens": 0},
        {"max_summary_tokens": "400"},
        {"min_summary_chars": -1},
        {"fan_in": 1},
        {"context_window": 0},
        {"keep": ["tokens", 4000]},
        {"trigger": [["messages", 9], ["tokens", 800]]},
        {"adaptive": True, "keep": ["messages", 5]},
        {"recall_tokens": -1},
        {"recall_tokens": True},
        {"profile": "poetry"},
        {"batch": 0},
        {"batch": 1.5},
        {"chunk_tokens": 0},
        {"protect": "yes"},
        {"truncate_tool_args": -5},
        {"important": "deadline"},
        {"important": [7]},
        {"important": ["(a+)+$"]},
        {"important": ["ok", "a("]},
        {"initial_prompt": 7},
        {"extend_prompt": None},
    ],
)
def test_policy_rejects_a_wrong_setting_and_names_it(wrong):
    with pytest.raises(PolicyError) as caught:
        Policy.load(wrong)
    assert isinstance(caught.value, EngineError)
    assert any(str(value) in str(caught.value) for value in _flat(wrong.values()))


@pytest.mark.parametrize("value", [None, [], "layered", 3, {1: 2}])
def test_policy_rejects_values_that_are_not_objects(value):
    with pytest.raises(PolicyError, match="expected an object"):
        Policy.load(value)


def test_error_shortens_a_huge_wrong_value():
    with pytest.raises(PolicyError) as caught:
        Policy(strategy="x" * 100_000)
    assert len(str(caught.value)) < 300


def test_policy_cannot_be_changed():
    with pytest.raises(ValueError, match="frozen"):
        Policy().enabled = False


def test_every_preset_has_a_label():
    assert [name for name, _ in list_choices(LABELS)] == list(PRESETS)
    assert all(label for _, label in list_choices(LABELS))


def test_policy_has_a_setting_for_each_feature():
    policy = Policy.load(
        {
            "strategy": "topics",
            "recall_tokens": 0,
            "profile": "project",
            "batch": 5,
            "important": ["(?i)deadline"],
            "protect": False,
            "truncate_tool_args": 100,
            "chunk_tokens": 3000,
            "initial_prompt": " Write {this} %s. ",
            "final_prompt": "Before:",
        }
    )
    assert Policy.load(json.loads(json.dumps(policy.dump()))) == policy
    assert policy.important == ("(?i)deadline",)
    assert policy.initial_prompt == "Write {this} %s."


@pytest.mark.parametrize("text", ["{blo{blocks}cks}", "a {b{b{blocks}locks}locks} b"])
def test_policy_rejects_a_prompt_with_a_nested_slot(text):
    with pytest.raises(PolicyError, match="final_prompt"):
        Policy(final_prompt=text)
    assert Policy(final_prompt="Before {blocks}:").final_prompt == "Before {blocks}:"


def test_policy_loads_values_from_before_newer_settings():
    old = {
        "preset": "guide",
        "enabled": True,
        "strategy": "running",
        "trigger": [{"turns": 11}],
        "keep": ["turns", 10],
        "max_summary_tokens": 400,
        "min_summary_chars": 0,
        "fan_in": 5,
        "summary_budget": 1600,
        "context_window": None,
        "adaptive": False,
    }
    assert Policy.load(old) == Policy(preset="guide")


def test_policy_rejects_too_many_or_too_long_patterns():
    for important in (["x"] * 21, ["x" * 201], [""]):
        with pytest.raises(PolicyError, match="important: .*expected"):
            Policy(important=important)


@pytest.mark.parametrize("prompt", ["a\0b", "a\ud800b", "x" * 8001])
def test_policy_rejects_prompts_that_cannot_be_sent(prompt):
    with pytest.raises(PolicyError, match="merge_prompt: .*expected"):
        Policy(merge_prompt=prompt)


def test_own_numbers_replace_those_of_the_langmem_preset():
    policy = Policy(preset="langmem", keep=("turns", 2))
    assert (policy.keep, policy.fold_least) == (("turns", 2), 0)
    with pytest.raises(PolicyError, match="fold_least expects tokens"):
        Policy(preset="langmem", keep=("turns", 2), fold_least=100)


def test_policy_accepts_the_arguments_of_langchain():
    policy = Policy.from_langchain(trigger={"tokens": 900, "messages": 30})
    assert policy.trigger == ((("tokens", 900), ("messages", 30)),)
    assert (policy.keep, policy.chunk_tokens) == (("messages", 20), 4000)
    whole = Policy.from_langchain(
        trigger=("messages", 50), trim_tokens_to_summarize=None
    )
    assert whole.chunk_tokens == 12_000
    assert Policy.from_langchain().trigger == ()


def test_deepagents_preset_shortens_old_arguments():
    assert Policy(preset="deepagents").truncate_tool_args == 2000


def _flat(values):
    for value in values:
        yield from _flat(value) if isinstance(value, list) else [value]
