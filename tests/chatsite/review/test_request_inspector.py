"""The request inspector: what was sent for a reply, from where, and if it holds."""

import re

import pytest
from django.db import connection
from django.urls import reverse

from chatsite.review.models import AccessEvent
from chatsite.turns import lifecycle
from chatsite.turns.models import Turn
from memory import actions, context
from memory.models import Prompt
from tests.memory.scenes import plant, say, summarise


def url_of(conversation, seq):
    return reverse("admin:desk-request", args=[conversation.pk, seq])


@pytest.fixture
def inspector(reviewer, conversation):
    """inspector(8) -> the page's text, as the reviewer sees it."""

    def get(seq):
        response = reviewer.get(url_of(conversation, seq))
        assert response.status_code == 200
        return response.content.decode()

    return get


@pytest.fixture
def replied(conversation):
    """#10 answers #9, with #1–#4 in a summary, #2 pinned, the rest in the window."""
    summarise(conversation, 1, 4, text="They began.")
    actions.pin(conversation, 2)
    return say(conversation, "And now?")


def run(statement, *values):
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        assert cursor.rowcount == 1


def test_it_shows_where_each_part_comes_from(inspector, replied):
    text = inspector(10)
    parts = re.findall(r'class="desk-part desk-part-(\w+)"', text)
    assert parts == ["system", "summaries", "pinned", "window", "newest", "reply"]
    for name in ("v1 of #1–#4", "#2", "#5", "#9"):
        assert f">{name}</a>" in text
    assert "the hash matches what was sent" in text
    assert "Reply to: And now?" in text
    assert AccessEvent.objects.get().target == "request #10"


def test_it_compares_the_estimate_with_what_was_reported(inspector, replied):
    plant(replied, tokens_estimated=150, tokens_input=100, tokens_cached=64)
    plant(replied, tokens_output=7, first_token_ms=321, total_ms=4321, attempts=2)
    text = inspector(10)
    for words in ("the estimate was +50%", "36 fresh", "321 ms", "4,321 ms"):
        assert words in text


@pytest.mark.parametrize(
    ("table", "change", "where"),
    [
        ("memory_message", "text = 'Forged'", "seq = 6"),
        ("memory_message", "role = 'assistant'", "seq = 5"),
        ("memory_summary", "text = 'Forged'", "version = 1"),
    ],
)
def test_it_finds_a_forged_text_and_says_which(
    inspector, replied, table, change, where
):
    run(f"UPDATE {table} SET {change} WHERE {where}")  # noqa: S608
    text = inspector(10)
    assert "the hash does not match" in text
    assert text.count("changed since it was written") == 1


def test_it_finds_a_forged_reference(inspector, replied):
    refs = {**replied.refs, "window": [[6, 8]]}
    value = connection.ops.adapt_json_value(refs, None)
    run("UPDATE memory_modelcall SET refs = %s WHERE id = %s", value, replied.pk)
    assert "the hash does not match" in inspector(10)


def test_it_finds_a_forged_reply(inspector, replied):
    run("UPDATE memory_message SET text = 'Forged' WHERE seq = 10")
    text = inspector(10)
    assert "the hash matches what was sent" in text
    assert "changed since it was written" in text


def test_it_tells_what_its_owner_erased_from_what_was_forged(
    inspector, conversation, replied
):
    actions.delete(conversation, 6)
    assert "can no longer be proved" in inspector(10)


@pytest.mark.parametrize("refs", [{}, [], {"system": 5}, "text"])
def test_it_survives_broken_references(inspector, replied, refs):
    plant(replied, refs=refs)
    assert "The references are broken" in inspector(10)


def test_it_shows_a_prompt_that_has_changed(inspector, replied):
    plant(Prompt.objects.get(text__startswith="You are"), text="You are a pirate.")
    assert "the hash does not match" in inspector(10)


def test_it_shows_the_request_of_a_turn_without_a_reply(inspector, conversation):
    message = lifecycle.submit(conversation, text="Hm?", client_id="x").message
    claim = lifecycle.claim(conversation.pk)
    built = context.build(conversation, newest=message, model="m")
    claim = lifecycle.begin(claim, built, "m")
    lifecycle.finish(claim, lifecycle.Result(Turn.State.FAILED, "", error="timeout"))
    text = inspector(message.seq + 1)
    assert "the hash matches what was sent" in text
    assert "nothing came of the request" in text


def test_there_is_none_for_what_is_no_reply(reviewer, conversation):
    assert reviewer.get(url_of(conversation, 1)).status_code == 404
    assert reviewer.get(url_of(conversation, 99)).status_code == 404


def test_a_reply_that_was_written_elsewhere_has_no_request(inspector, conversation):
    row = conversation.messages.get(seq=8)
    plant(row.model_calls.get(), message=conversation.messages.get(seq=6))
    assert "it was written elsewhere" in inspector(8)


def test_it_shows_no_word_to_who_may_see_numbers_alone(
    client, staff_with, conversation, replied
):
    client.force_login(staff_with("metadata", "export", "purge"))
    text = client.get(url_of(conversation, 10)).content.decode()
    assert "the hash matches what was sent" in text
    assert "hidden, 8 characters" in text
    for words in ("And now?", "They began", "Text 1", "Reply to"):
        assert words not in text
    assert not AccessEvent.objects.exists()
