"""Examples answered again: by another model, as another policy would have asked, and
what that may cost."""

import pytest
from asgiref.sync import sync_to_async
from django.urls import reverse

from chatsite import plugins
from chatsite.contrib.lab.examples import answers, services
from chatsite.contrib.lab.examples.models import Example, ExampleAnswer
from chatsite.jobs import queue
from chatsite.turns import limits
from chatsite.turns.models import Allowance, Job
from memory import actions, transcript
from memory.models import Conversation, ModelCall
from memory.view import rebuilding
from tests.memory.scenes import say

from ....scenes import HTMX, memory_url, signed_in, work_off

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def provider(upstream, settings):
    settings.CHAT_MODELS = ["ok", "401"]
    settings.DEMO_TOKENS_PER_SECOND = 0
    return upstream


@pytest.fixture
def chat(alice):
    """Six turns, of which the last reply is an example."""
    made = transcript.create_conversation(alice)
    for n in range(6):
        say(made, f"Fact {n}: the order A-77{n} costs {n}50 euros.")
    services.mark_example(made, 12, alice, "wrong", "No idea.")
    return made


def last_call():
    return ModelCall.objects.get(message__seq=12)


def ask(client, **values):
    return client.post(reverse("examples-answers"), values)


def test_other_model_gets_the_same_request_and_page_shows_both_replies(
    client, alice, chat, provider
):
    example = Example.objects.get()
    answer = ask(client, example=example.pk, model="ok")
    assert answer.url == reverse("example", args=[example.pk])
    waits = client.get(answer.url).content.decode()
    assert "Answers are being written." in waits
    work_off()
    [request] = provider.calls
    assert request.messages == rebuilding.rebuild_context(last_call()).wire
    row = ExampleAnswer.objects.get()
    assert (row.model, row.requests, row.error) == ("ok", 1, "")
    page = client.get(answer.url).content.decode()
    assert row.text
    for text in (row.text, "Reply to: Fact 5", "No idea."):
        assert text in page
    spent = Allowance.objects.get(pk=alice.pk).tokens_used
    assert spent == row.tokens_in + row.tokens_out > 0
    done = client.get(reverse("examples-progress"), headers=HTMX)
    assert done["HX-Refresh"] == "true"
    # It is no message, no memory and no request of the conversation.
    assert chat.messages.count() == 12
    assert ModelCall.objects.count() == 6


def test_other_policy_builds_its_own_request(client, chat, provider, settings):
    settings.SUMMARY_MODEL = "ok"
    ask(client, example=Example.objects.get().pk, model="ok", preset="langgraph")
    work_off()
    row = ExampleAnswer.objects.get()
    assert (row.error, row.preset) == ("", "langgraph")
    assert row.requests == len(provider.calls) > 1
    sent = provider.calls[-1].messages
    assert sent[-1]["content"].startswith("Fact 5")
    assert len(sent) < 11 == len(rebuilding.rebuild_context(last_call()).wire) - 1
    assert not Conversation.objects.get().summaries.exists()


def test_summaries_count_as_requests_of_their_model(client, chat, provider, settings):
    settings.SUMMARY_MODEL, noted = "ok", []

    def note(used, **sent):
        noted.append(used.model)

    plugins.call_charged.connect(note)
    try:
        ask(client, example=Example.objects.get().pk, model="401", preset="langgraph")
        work_off()
    finally:
        plugins.call_charged.disconnect(note)
    assert ExampleAnswer.objects.get().error == "auth"
    assert {*noted} == {"ok"}


def test_a_policy_that_would_cost_too_much_is_stopped(
    client, chat, provider, settings, monkeypatch
):
    settings.SUMMARY_MODEL = "ok"
    monkeypatch.setattr(answers, "MOST_SUMMARIES", 0)
    ask(client, example=Example.objects.get().pk, model="ok", preset="langgraph")
    work_off()
    page = client.get(reverse("example", args=[Example.objects.get().pk]))
    assert "too much for one answer" in page.content.decode()
    assert provider.calls == []


def test_a_model_that_is_gone_says_why(client, chat, provider):
    ask(client, model="401")
    work_off()
    row = ExampleAnswer.objects.get()
    assert (row.text, row.error) == ("", "auth")


def test_answers_are_limited_per_job_and_per_example(
    client, alice, chat, provider, monkeypatch
):
    monkeypatch.setattr(answers, "MOST_AT_ONCE", 2)
    monkeypatch.setattr(answers, "MOST_KEPT", 1)
    for seq in (2, 4):
        services.mark_example(chat, seq, alice, "good")
    for _ in range(2):
        assert ask(client, model="ok").status_code == 302
        # One job of a user at a time.
        busy = ask(client, model="ok")
        assert (busy.status_code, "Other answers" in busy.content.decode()) == (
            409,
            True,
        )
        work_off()
    assert len(provider.calls) == 4
    seqs = ExampleAnswer.objects.values_list("example__message__seq", flat=True)
    assert sorted(seqs) == [2, 4]


def test_tokens_that_are_used_up_and_wrong_names_are_refused(
    client, alice, chat, provider, settings
):
    for wrong in ({"model": "gpt-9"}, {"model": "ok", "preset": "none"}, {}):
        assert ask(client, **wrong).status_code == 409
    settings.TOKENS_PER_DAY = 10
    limits.charge_tokens(alice.pk, 10)
    assert ask(client, model="ok").status_code == 409
    assert not Job.objects.exists()


def test_an_example_that_went_or_lost_its_request_is_not_sent(
    client, alice, chat, provider
):
    services.mark_example(chat, 10, alice, "good")
    ask(client, model="ok")
    client.post(memory_url("message", chat, seq=12, name="delete"), headers=HTMX)
    client.post(memory_url("message", chat, seq=1, name="delete"), headers=HTMX)
    work_off()
    assert provider.calls == []
    assert ExampleAnswer.objects.get().error == answers.CANNOT_REBUILD


def test_an_answer_has_no_word_of_what_was_deleted_meanwhile(
    client, chat, provider, monkeypatch
):
    ask(client, model="ok")
    pay = answers._AnswerRequest._pay_for

    async def pay_and_delete(*args, **options):
        reply = await pay(*args, **options)
        await sync_to_async(actions.delete_message)(chat, 1)
        return reply

    monkeypatch.setattr(answers._AnswerRequest, "_pay_for", pay_and_delete)
    work_off()
    row = ExampleAnswer.objects.get()
    assert (row.text, row.error) == ("", answers.CANNOT_REBUILD)


def test_answers_are_cancelled(client, alice, chat, provider):
    ask(client, model="ok")
    client.post(reverse("examples-cancel"))
    assert queue.latest(answers.KIND, alice).cancel_requested_at
    assert "Stopping…" in client.get(reverse("examples")).content.decode()


def test_strangers_have_none_answered(bob, chat, provider):
    answer = ask(signed_in(bob), example=Example.objects.get().pk, model="ok")
    assert answer.status_code == 409
    assert not Job.objects.exists()
