"""The second act of the demo: which step comes next, and what it costs others."""

import re

import pytest
from django.urls import reverse

from chatsite.pages import demo
from chatsite.turns import variations
from memory import actions, versions
from tests.memory.scenes import summarise

from ..scenes import HTMX, signed_in, submit, talk_in_turns, url


def text_of(client, conversation, **query):
    answer = client.get(url("guide", conversation), query, headers=HTMX)
    assert answer.status_code in (200, 204)
    return answer.content.decode()


@pytest.fixture
def summarised(conversation, monkeypatch):
    """A demo whose lines were sent, and are a summary now."""
    monkeypatch.setattr(demo, "SCRIPT", ())
    summarise(conversation, 1, 2, text="They said hello.")
    conversation.refresh_from_db()
    return conversation


def edit(conversation):
    [summary] = versions.active_summaries(conversation)
    return actions.rewrite_summary(
        conversation, summary.version, "They greeted.", author=conversation.owner
    )


def test_guide_waits_for_the_last_reply_and_for_a_summary(client, conversation):
    assert text_of(client, conversation) == ""
    page = client.get(url("detail", conversation), {"guide": ""}).content.decode()
    assert page.count("data-line=") == len(demo.SCRIPT)
    for line in demo.find_lines(conversation):
        submit(conversation, line.text, line.client_id)
    assert text_of(client, conversation) == ""


def test_guide_steps_follow_the_actions_of_the_user(client, summarised):
    edit_url = reverse("memory-edit", args=[summarised.uuid, 1])
    assert edit_url in text_of(client, summarised)
    edit(summarised)
    ask = text_of(client, summarised)
    assert ">Where am I going?</template>" in ask
    assert "Your turn" in ask
    talk_in_turns(summarised, "Where am I going?")
    assert "switch the summaries off" in text_of(client, summarised)
    variations.switch_off(summarised, ("summaries",))
    end = text_of(client, summarised)
    assert "One question, two answers" in end
    assert "That is Windowpane" in end
    variations.switch_off(summarised, ())
    # Another edit is no reason to ask again, but a deleted question is, by a new id.
    edit(summarised)
    assert "template" not in text_of(client, summarised)
    actions.delete_message(
        summarised, summarised.messages.filter(role="user").last().seq
    )
    again = text_of(client, summarised)
    assert ">Where am I going?</template>" in again
    assert re.search(r"demo-ask-\d+", again)[0] not in ask


def test_the_page_has_it_only_after_the_demo(client, summarised):
    page = url("detail", summarised)
    assert 'class="guide"' not in client.get(page).content.decode()
    assert 'class="guide"' in client.get(page, {"guide": ""}).content.decode()
    assert client.post("/demo/").url.endswith("/?guide")


def test_guide_is_a_404_for_another_user(bob, summarised):
    assert signed_in(bob).get(url("guide", summarised)).status_code == 404
