"""Names and ids of calls as providers take them, and what a provider adds to a call."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from memory.engine.compose import Shape, to_wire
from memory.engine.tools import call_forms
from memory.engine.tools.call_forms import EXTRAS

from ...fakes.openai_rules import find_faults

LONG = "tool_0_look.up:8f14e45fceea167a5a36dedd4bea25433"


def ask(*calls, text="", **extras):
    asked = [{"name": name, "args": {}, "id": call_id} for name, call_id in calls]
    return AIMessage(text, tool_calls=asked, additional_kwargs=extras)


def answer(call_id, text="Found."):
    return ToolMessage(text, tool_call_id=call_id)


class TestNames:
    @pytest.mark.parametrize(
        ("name", "sent"),
        [
            ("web_run", "web_run"),
            ("web.run", "web_run"),
            ("2nd", "_2nd"),
            ("", "unnamed"),
            ("x" * 70, "x" * 64),
            ("天气", "_"),
        ],
    )
    def test_name_is_sent_as_all_providers_accept_it(self, name, sent):
        assert call_forms.name_tools([name]) == {name: sent}

    def test_valid_name_is_unchanged(self):
        named = call_forms.name_tools(["web.run", "web_run", "web/run"])
        assert named["web_run"] == "web_run"
        assert len(set(named.values())) == 3

    @given(st.sets(st.text(max_size=80), max_size=12))
    def test_distinct_names_stay_distinct(self, names):
        sent = call_forms.name_tools(names)
        assert len(set(sent.values())) == len(names)
        assert all(
            re.fullmatch(r"[A-Za-z_][\w-]{0,63}", s, re.A) for s in sent.values()
        )


class TestIds:
    @given(st.text(min_size=1, max_size=100), st.sampled_from(["plain", "nine"]))
    def test_id_fits_and_stays_the_same(self, call_id, form):
        made = call_forms.shorten_id(call_id, form)
        pattern = {"plain": r"[A-Za-z0-9_-]{1,40}", "nine": r"[A-Za-z0-9]{9}"}[form]
        assert re.fullmatch(pattern, made)
        assert call_forms.shorten_id(made, form) == made

    @pytest.mark.parametrize("form", ["plain", "nine"])
    def test_results_follow_their_calls(self, form):
        messages = [
            HumanMessage("Look."),
            ask(("web.run", LONG), ("web.run", f"{LONG}2")),
            answer(LONG, "One"),
            answer(f"{LONG}2", "Two"),
            AIMessage("Here."),
        ]
        sent = to_wire(Shape(calls=form).apply_to(messages))
        assert find_faults(sent) == []
        ids = [call["id"] for call in sent[1]["tool_calls"]]
        assert [each["tool_call_id"] for each in sent[2:4]] == ids
        assert messages[2].tool_call_id == LONG


class TestQuotedCalls:
    def test_rounds_become_quotations(self):
        messages = [
            HumanMessage("Look."),
            ask(("web.run", LONG), text="Let me look."),
            answer(LONG, "<b>"),
            AIMessage("Here."),
        ]
        sent = to_wire(Shape(calls="quoted").apply_to(messages))
        assert [each["role"] for each in sent] == [
            *("user", "assistant", "user", "assistant"),
        ]
        assert 'tool="web.run"' in sent[2]["content"]
        assert "&lt;b&gt;" in sent[2]["content"]
        assert "tool_calls" not in str(sent)


class TestExtras:
    stored = {
        "provider": "one.example",
        "message": {"reasoning_content": "Hm."},
        "calls": {LONG: {"extra_content": {"google": {"thought_signature": "abc"}}}},
    }

    @property
    def messages(self):
        asked = ask(("look", LONG), **{EXTRAS: self.stored})
        return [HumanMessage("Look."), asked, answer(LONG)]

    def test_extras_go_back_to_their_provider(self):
        sent = to_wire(
            Shape(calls="plain", provider="one.example").apply_to(self.messages)
        )
        assert sent[1]["reasoning_content"] == "Hm."
        extra = sent[1]["tool_calls"][0]["extra_content"]
        assert extra == {"google": {"thought_signature": "abc"}}

    @pytest.mark.parametrize("provider", ["", "other.example"])
    def test_extras_are_not_sent_to_other_providers(self, provider):
        sent = str(
            to_wire(Shape(calls="plain", provider=provider).apply_to(self.messages))
        )
        assert "Hm." not in sent
        assert "abc" not in sent

    def test_missing_extras_are_replaced_where_they_are_wanted(self):
        shape = Shape(wanted=("reasoning_content", "thought_signature"))
        asked = ask(("look", "a"), ("look", "b"))
        messages = [asked, answer("a"), answer("b"), AIMessage("Here.")]
        sent = to_wire(shape.apply_to(messages))
        assert [each.get("reasoning_content") for each in sent] == [
            " ",
            None,
            None,
            " ",
        ]
        first, second = sent[0]["tool_calls"]
        assert "thought_signature" in str(first)
        assert "thought_signature" not in str(second)

    def test_applying_twice_changes_nothing(self):
        shape = Shape(
            calls="nine", provider="one.example", wanted=("reasoning_content",)
        )
        once = shape.apply_to(self.messages)
        assert to_wire(shape.apply_to(once)) == to_wire(once)

    def test_large_extras_are_dropped(self):
        assert call_forms.bound_extras({"message": {"a": "x" * 100_001}}) == {}
        assert call_forms.bound_extras(self.stored) == self.stored


class TestShape:
    @pytest.mark.parametrize(
        ("messages", "left"),
        [
            ([HumanMessage("Hi")], {}),
            ([ask(("look", "a")), answer("a")], {}),
            ([ask(("look.up", "a")), answer("a")], {"calls": "plain"}),
            ([ask(("look", LONG)), answer(LONG)], {"calls": "plain"}),
            (
                [ask(("look", LONG), **{EXTRAS: TestExtras.stored}), answer(LONG)],
                {"calls": "plain", "provider": "one.example"},
            ),
        ],
    )
    def test_request_stores_only_what_changed_it(self, messages, left):
        shape = Shape(calls="plain", provider="one.example").narrow_to(messages)
        assert shape == Shape(**left)
        assert Shape.from_refs(shape.to_refs()) == shape


def test_shape_of_a_later_release_keeps_its_known_fields():
    """A process of this release reads it while an upgrade runs, or after going back."""
    refs = {"shape": {"system_role": "user", "joined": True, "later": [5]}}
    assert Shape.from_refs(refs) == Shape("user", True)
