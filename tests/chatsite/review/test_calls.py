"""Model calls in the admin: what was sent, rebuilt and proved, and what it cost."""

import pytest
from django.urls import reverse

from tests.memory.scenes import plant, say


def test_it_shows_what_the_model_saw(page, conversation):
    call = say(conversation, "What was my first text?")
    text = page("modelcall_change", call.pk)
    assert "the hash matches what was sent" in text
    assert "What was my first text?" in text


def test_it_says_when_the_hash_does_not_match(page, conversation):
    call = say(conversation, "What was my first text?")
    plant(conversation.messages.get(seq=1), text="changed")
    assert "the hash does not match" in page("modelcall_change", call.pk)


@pytest.mark.parametrize("refs", [{}, [], {"system": 5}])
def test_it_survives_broken_references(page, conversation, refs):
    call = say(conversation, "Hi")
    plant(call, refs=refs)
    assert "The references are broken" in page("modelcall_change", call.pk)


@pytest.mark.parametrize(
    ("reported", "drift", "cached", "cost"),
    [
        (None, "–", "–", "$0.0003"),
        (150, "+50%", "40%", "$0.0005"),
    ],
)
def test_it_shows_what_it_took(
    client, staff_with, conversation, settings, reported, drift, cached, cost
):
    settings.PRICE_INPUT, settings.PRICE_OUTPUT = 2.0, 10.0
    call = say(conversation, "Hi")
    plant(call, tokens_estimated=100, tokens_input=reported, tokens_cached=60)
    plant(call, tokens_output=20 if reported else 10)
    client.force_login(staff_with("metadata"))
    url = reverse("admin:memory_modelcall_changelist")
    text = client.get(url, {"q": str(conversation.uuid)}).content.decode()
    for value in (drift, cached, cost):
        assert f">{value}</td>" in text


def test_it_is_found_by_its_model(page, conversation):
    plant(say(conversation, "Hi"), model="gpt-9")
    assert "gpt-9" in page("modelcall_changelist", q="gpt-9")
    assert "gpt-9" not in page("modelcall_changelist", q="gpt").partition("<thead>")[2]


def test_an_error_that_is_no_code_is_hidden_from_who_may_not_read(
    client, staff_with, conversation
):
    client.force_login(staff_with("metadata"))
    call = say(conversation, "Hi")
    url = reverse("admin:memory_modelcall_change", args=[call.pk])
    for error, is_shown in (("timeout", True), ("EmptySummary", True), ("Oh", False)):
        plant(call, error=error)
        text = client.get(url).content.decode()
        assert (f">{error}<" in text) is is_shown
