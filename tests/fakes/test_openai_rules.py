"""The rules that requests are held against find what breaks them."""

import pytest

from .openai_rules import find_faults, find_violations


def call(call_id="a", name="look_up", arguments="{}", **values):
    function = {"name": name, "arguments": arguments}
    return {"id": call_id, "type": "function", "function": function, **values}


def asking(*calls):
    return {"role": "assistant", "content": None, "tool_calls": list(calls)}


def result(call_id="a", content="Warm"):
    return {"role": "tool", "tool_call_id": call_id, "content": content}


USER = {"role": "user", "content": "How warm is it?"}
TOOL = {"type": "function", "function": {"name": "look_up"}}


@pytest.mark.parametrize(
    "messages",
    [
        [USER],
        [{"role": "user", "content": ""}],
        [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
        [USER, asking(call()), result()],
        [USER, asking(call("a"), call("b")), result("a"), result("b", ""), USER],
    ],
)
def test_correct_messages_have_no_fault(messages):
    assert find_faults(messages) == []


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([], "at least one"),
        (None, "at least one"),
        ([{"role": "human", "content": "Hi"}], "role 'human'"),
        ([{"role": "user", "content": None}], "without content"),
        ([{"role": "user", "content": []}], "without content"),
        ([{"role": "assistant"}], "without content"),
        ([USER, asking(call()), result(content=None)], "without content"),
        ([USER, result()], "nothing before asks"),
        ([USER, asking(call()), result(), result()], "nothing before asks"),
        ([USER, asking(call()), USER, result()], "have to follow"),
        ([USER, asking(call())], "missing at the end"),
        (
            [USER, asking(call("a"), call("b")), result("b"), result("a")],
            "'b' comes before 'a'",
        ),
        ([USER, asking()], "too short"),
        ([USER, asking(call(), call()), result()], "ids of calls"),
        ([USER, asking(call("")), result("")], "ids of calls"),
        ([USER, asking(call(name="no name")), result()], "'no name'"),
        ([USER, asking(call(arguments="[1]")), result()], "arguments"),
        ([USER, asking(call(arguments="{")), result()], "arguments"),
        ([USER, asking(call(type="odd")), result()], "type 'odd'"),
    ],
)
def test_broken_rule_is_named(messages, words):
    assert any(words in fault for fault in find_faults(messages))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"tools": []}, "too short"),
        ({"tool_choice": "none"}, "only allowed"),
        ({"tools": [TOOL, TOOL]}, "comes twice"),
        ({"tools": [{**TOOL, "type": "odd"}]}, "no function's name"),
    ],
)
def test_broken_rule_of_tools_is_named(body, words):
    assert find_violations({"messages": [USER], "tools": [TOOL]}) == []
    assert any(words in each for each in find_violations({"messages": [USER], **body}))
