"""The admin's pages of the memory: readable, read-only, escaped, and without N+1."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from chatsite.review.readonly import ShortPaginator
from memory import transcript
from memory.models import Conversation, Message, ModelCall, Prompt, Summary
from tests.memory.scenes import say, summarise, talk

MODELS = (Conversation, Message, Summary, ModelCall, Prompt)


def name_of(model):
    return model._meta.model_name


@pytest.mark.parametrize("model", MODELS)
def test_it_shows_lists_and_pages(model, page, versions):
    row = model.objects.first()
    assert "Windowpane" in page(f"{name_of(model)}_changelist")
    text = page(f"{name_of(model)}_change", row.pk)
    assert 'name="_save"' not in text
    assert "deletelink" not in text


@pytest.mark.parametrize("model", MODELS)
def test_it_needs_no_inline_script_or_style(model, page, versions):
    """The site's CSP would block them."""
    inline = re.compile(r"<script(?![^>]* src=)|<style|<[^>]+ (style|on[a-z]+)=", re.I)
    name = name_of(model)
    for text in (
        page(f"{name}_changelist"),
        page(f"{name}_change", model.objects.last().pk),
    ):
        assert inline.findall(text) == []


@pytest.mark.parametrize("model", MODELS)
def test_it_asks_as_much_for_many_rows_as_for_few(
    model, client, staff_with, alice, bob, versions
):
    client.force_login(staff_with("metadata"))
    url = reverse(f"admin:memory_{name_of(model)}_changelist")
    client.get(url)
    with CaptureQueriesContext(connection) as few:
        client.get(url)
    for owner in (alice, bob, alice):
        more = transcript.create(owner, system_prompt=f"Prompt of {owner}")
        talk(more, 4)
        summarise(more, 1, 4)
    with CaptureQueriesContext(connection) as many:
        client.get(url)
    assert len(many) == len(few) <= 8


def test_it_does_not_count_a_whole_table(page, conversation, monkeypatch):
    monkeypatch.setattr(ShortPaginator, "most", 5)
    text = page("message_changelist")
    assert "more than 5 messages" in text
    assert "7 messages" not in text


def test_it_shows_the_beginning_of_a_long_text(page, conversation):
    say(conversation, "word " * 5000)
    text = page("message_changelist")
    assert len(text) < 40_000
    assert "word word …" in text
