"""Errors that can be said in any language."""

import pytest

from memory.engine.exceptions import PolicyError
from memory.engine.policy import Policy
from memory.engine.wording import TranslatableText, explain_refusal

GERMAN = {
    "%(value)s: expected one of %(kinds)s": "%(kinds)s erwartet statt %(value)s",
    "%(name)s: %(wrong)s": "%(name)s – %(wrong)s",
    "expected %(ge)s or more": "mindestens %(ge)s",
}


def german(text):
    return GERMAN.get(text, text)


def test_sentence_contains_its_inner_sentences():
    inner = TranslatableText("expected %(ge)s or more", {"ge": 2})
    outer = TranslatableText("%(name)s: %(wrong)s", {"name": "fan_in", "wrong": inner})
    assert outer.render() == "fan_in: expected 2 or more"
    assert outer.render(german) == "fan_in – mindestens 2"


def test_sentence_without_placeholders_may_have_a_percent_sign():
    assert TranslatableText("85 % of it").render() == "85 % of it"
    assert TranslatableText("").render(lambda text: "the header of a catalog") == ""


def test_policy_error_names_each_setting_in_that_language():
    with pytest.raises(PolicyError) as caught:
        Policy(keep=("words", 3), fan_in=1)
    kinds = "tokens, messages, turns, fraction"
    assert str(caught.value).startswith(f"keep: 'words': expected one of {kinds}; ")
    said = caught.value.render(german)
    assert said.startswith(f"keep – {kinds} erwartet statt 'words'; ")
    assert "mindestens 2" in said


def test_typed_text_fills_no_placeholder():
    with pytest.raises(PolicyError) as caught:
        Policy(**{"50%(value)s": 1})
    assert str(caught.value) == "50%(value)s: 1: there is no such setting"


def test_unknown_reason_is_pydantics():
    error = {"type": "url_scheme", "msg": "URL scheme should be 'http'", "ctx": {}}
    assert explain_refusal(error).render(german) == "URL scheme should be 'http'"
