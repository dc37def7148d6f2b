"""The second act of the demo: which step comes next, and what it costs others."""

import pytest
from django.urls import reverse

from memory import actions, versions
from memory.models import ModelCall
from tests.memory.scenes import summarise, unguarded

from ..scenes import HTMX, signed_in, submit, url


def text_of(client, conversation, **query):
    answer = client.get(url("guide", conversation), query, headers=HTMX)
    assert answer.status_code in (200, 204)
    return answer.content.decode()


@pytest.fixture
def summarised(conversation):
    summarise(conversation, 1, 2, text="They said hello.")
    conversation.refresh_from_db()
    return conversation


def edit(conversation):
    [summary] = versions.active(conversation)
    return actions.rewrite(
        conversation, summary.version, "They greeted.", author=conversation.owner
    )


def test_it_waits_for_the_last_reply_and_for_a_summary(client, conversation):
    assert text_of(client, conversation) == ""
    summarise(conversation, 1, 2, text="They said hello.")
    submit(conversation, "One more")
    assert text_of(client, conversation) == ""


def test_its_steps_follow_what_the_person_did(client, summarised):
    edit_url = reverse("memory-edit", args=[summarised.uuid, 1])
    assert edit_url in text_of(client, summarised)
    edit(summarised)
    pin_url = reverse("memory-message", args=[summarised.uuid, 3, "pin"])
    assert pin_url in text_of(client, summarised)
    actions.pin(summarised, 3)
    assert "Step 3 of 3" in text_of(client, summarised)
    end = text_of(client, summarised, proved=1)
    assert "hash matches" in end
    assert "begin a new conversation" in end
    # What is undone comes again.
    actions.unpin(summarised, 3)
    assert pin_url in text_of(client, summarised)


def test_it_does_not_claim_what_is_not_so(client, summarised):
    edit(summarised)
    actions.pin(summarised, 1)
    call = ModelCall.objects.filter(purpose="reply").latest("pk")
    unguarded(ModelCall.objects.filter(pk=call.pk)).update(sha256="0" * 64)
    assert "hash does not match" in text_of(client, summarised, proved=1)
    actions.delete(summarised, 3)
    assert "deleted later" in text_of(client, summarised, proved=1)


def test_the_page_has_it_only_after_the_demo(client, summarised):
    page = url("detail", summarised)
    assert 'class="guide"' not in client.get(page).content.decode()
    assert 'class="guide"' in client.get(page, {"guide": ""}).content.decode()
    assert client.post("/demo/").url.endswith("/?guide")


def test_it_is_missing_for_a_stranger(bob, summarised):
    assert signed_in(bob).get(url("guide", summarised)).status_code == 404
