"""A provider that cuts what it is sent, and says so only by its count of tokens."""

import pytest

from chatsite.llm import providers
from memory import transcript
from memory.models import Conversation, ModelCall

from ..scenes import answer, signed_in, submit, url

pytestmark = pytest.mark.django_db
LONG = "The quick brown fox jumps over the lazy dog again and again. " * 420


def reply_to(conversation, text, share):
    """A reply, of whose request so much of the estimate is reported."""
    submit(conversation, text)
    answered = answer(conversation, tokens_input=1)
    calls = ModelCall.objects.filter(conversation=conversation).order_by("pk")
    sent = calls.last().tokens_estimated
    calls.filter(pk=calls.last().pk).update(tokens_input=round(sent * share))
    return answered


def pane(conversation, **values):
    client = signed_in(conversation.owner)
    page = client.get(url("context", conversation), values).content.decode()
    return " ".join(page.split())


@pytest.fixture
def long_talk(alice):
    made = transcript.create_conversation(alice)
    reply_to(made, LONG, 0.32)
    return made


@pytest.mark.parametrize("is_past", [False, True])
def test_page_says_how_much_the_provider_has_read(long_talk, is_past, settings):
    settings.CONTEXT_WINDOW = 32_000
    page = pane(long_talk, **({"reply": 2} if is_past else {}))
    window = providers.context_window(long_talk.model or providers.default_model())
    assert "The provider read only" in page
    assert "(32 %), so the beginning was cut" in page
    assert f"smaller than the {window:,} tokens" in page
    assert "+21" not in page
    assert "For reply #2 the model read" not in page
    assert "the provider read only a part of it" in page


@pytest.mark.parametrize("share", [0.7, 1, 1.4])
def test_error_of_the_estimate_is_no_cut(alice, share):
    made = transcript.create_conversation(alice)
    reply_to(made, LONG, share)
    assert "The provider read only" not in pane(made, reply=2)


def test_count_of_what_was_not_cached_is_no_cut(alice):
    made = transcript.create_conversation(alice)
    reply_to(made, LONG, 0.02)
    assert "The provider read only" not in pane(made, reply=2)


def test_estimate_that_has_grown_by_other_texts_is_no_cut(long_talk):
    Conversation.objects.filter(pk=long_talk.pk).update(token_ratio=3.5)
    assert "The provider read only" not in pane(long_talk, reply=2)


def test_estimate_learns_nothing_from_a_cut(alice):
    made = transcript.create_conversation(alice)
    submit(made, LONG)
    answer(made, tokens_input=2_050)
    made.refresh_from_db()
    assert (made.token_ratio, made.token_overhead) == (1.0, 0)
