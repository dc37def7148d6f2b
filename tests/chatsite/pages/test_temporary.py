"""A temporary conversation from its switch on the home page to its end."""

import pytest
from django.contrib.admin import site
from django.test import Client
from django.urls import reverse

from chatsite.turns import runner, titles
from chatsite.turns.copying import copies
from chatsite.turns.models import Allowance, Turn
from memory import library, transcript
from memory.models import Conversation, ModelCall, Prompt
from tests.memory.scenes import summarise

from ..scenes import HTMX, page_of, signed_in, submit, talk_in_turns, url

pytestmark = pytest.mark.django_db(transaction=True)

SECRET = "zebraquagga"


@pytest.fixture
def client(alice):
    return signed_in(alice)


@pytest.fixture
def fleeting(alice):
    made = transcript.create_conversation(
        alice, temporary=True, system_prompt=f"Be a {SECRET}."
    )
    talk_in_turns(made, f"Hello {SECRET}")
    summarise(made, 1, 2, text=f"About {SECRET}.")
    return made


@pytest.fixture
def reviewer(django_user_model):
    """Superusers have all rights."""
    return signed_in(django_user_model.objects.create_superuser("root"))


def test_the_switch_makes_one_that_no_list_has(client):
    assert 'name="temporary"' in client.get("/").content.decode()
    begun = client.post("/c/", {"first": SECRET, "temporary": "on"}, headers=HTMX)
    made = Conversation.objects.get()
    assert made.is_temporary
    assert begun.headers["HX-Redirect"] == url("detail", made)
    page = page_of(client, made)
    assert "Deleted 15 minutes after you close it" in page
    assert "its requests are deleted. What the model saw can no longer be shown" in page
    assert "data-temporary" in page
    assert SECRET not in client.get("/").content.decode()
    assert "No results" in client.get("/", {"q": SECRET}).content.decode()


def test_conversation_is_permanent_without_the_switch(client):
    client.post("/c/", {"first": "Hello"}, headers=HTMX)
    made = Conversation.objects.get()
    assert not made.is_temporary
    assert "data-temporary" not in page_of(client, made)


def test_temporary_conversation_gets_no_title_request(fleeting):
    assert not titles.may_be_due(fleeting)
    fleeting.refresh_from_db()
    assert fleeting.title == "Temporary conversation"


def test_spent_tokens_stay_counted_after_deletion(alice, fleeting):
    used = Allowance.objects.get(user=alice).tokens_used
    assert used > 0
    library.delete_conversation(fleeting)
    library.purge_deleted()
    assert Allowance.objects.get(user=alice).tokens_used == used


def test_limits_hold_for_it(client, settings):
    settings.CONVERSATIONS_PER_MINUTE = 1
    fields = {"first": "Hello", "temporary": "on"}
    for _ in range(9):
        last = client.post("/c/", fields, headers=HTMX)
    assert "HX-Redirect" not in last.headers
    assert Conversation.objects.count() < 9


def test_deleting_it_leaves_nothing_to_undo(client, fleeting):
    submit(fleeting, "Still waiting")
    page = client.post(url("delete", fleeting), follow=True).content.decode()
    assert url("undelete", fleeting) not in page
    assert not Conversation.objects.exists()
    assert not Turn.objects.exists()


@pytest.mark.parametrize("page", ["logout", "admin:logout"])
def test_logging_out_deletes_it(alice, bob, client, fleeting, page):
    kept = transcript.create_conversation(alice)
    others = transcript.create_conversation(bob, temporary=True)
    submit(fleeting, "Still waiting")
    alice.is_staff = True
    alice.save()
    client.post(reverse(page))
    assert set(Conversation.objects.all()) == {kept, others}
    assert signed_in(alice).get(url("detail", fleeting)).status_code == 404


def test_logout_of_other_users_deletes_nothing(bob, fleeting):
    for client in (Client(), signed_in(bob)):
        client.post(reverse("logout"))
    assert Conversation.objects.count() == 1


def test_a_sweep_finds_what_has_expired(fleeting):
    assert library.find_expired not in runner._make_backlog().find_due()
    Conversation.objects.update(temporary_until=fleeting.created_at)
    assert library.find_expired in runner._make_backlog().find_due()


def test_a_reply_that_runs_writes_nothing_once_it_is_gone(fleeting):
    submit(fleeting, "Go on")
    library.delete_conversation(fleeting)
    library.purge_deleted()
    assert not Conversation.objects.exists()
    assert not ModelCall.objects.exists()
    assert not Prompt.objects.exists()


def test_a_branch_of_it_is_temporary(fleeting):
    assert copies.branch_conversation(fleeting, 2).is_temporary


def test_staff_find_nothing_of_it_in_any_list(reviewer, fleeting):
    for model in site._registry:
        meta = model._meta
        if meta.app_label in ("memory", "chat", "desk"):
            address = reverse(f"admin:{meta.app_label}_{meta.model_name}_changelist")
            page = reviewer.get(address).content.decode()
            assert SECRET not in page, model
            assert str(fleeting.uuid)[:8] not in page, model
            page = reviewer.get(address, {"q": str(fleeting.uuid)}).content.decode()
            assert SECRET not in page, model


def test_staff_open_no_page_of_it(reviewer, fleeting):
    pk = fleeting.pk
    message, call = fleeting.messages.first().pk, fleeting.model_calls.first().pk
    for name, *args in (
        ("review-timeline", pk),
        ("review-request", pk, 2),
        ("review-figures", pk),
    ):
        assert reviewer.get(reverse(f"admin:{name}", args=args)).status_code == 404
    for name, key in (
        ("memory_conversation", pk),
        ("memory_message", message),
        ("memory_modelcall", call),
        ("memory_summary", fleeting.summaries.first().pk),
        ("chat_turn", fleeting.turns.first().pk),
    ):
        page = reviewer.get(reverse(f"admin:{name}_change", args=[key]), follow=True)
        assert SECRET not in page.content.decode()
    purge = reverse("admin:review-purge", args=[pk])
    reviewer.post(purge, {})
    assert Conversation.objects.filter(pk=pk).exists()
