"""The system prompt of a conversation: set on the page, sent, proved, kept, erased."""

import html
import re

import pytest
from django.conf import settings

from chatsite.turns.copying import copies
from memory import actions, context, library, prompts, transcript
from memory.models import Conversation, Prompt
from memory.view import rebuilding

from ..scenes import (
    HTMX,
    memory_url,
    page_of,
    signed_in,
    talk_in_turns,
    url,
    violations,
)

OWN = "Answer like a pirate.\nAlways."


def save(client, conversation, text, **values):
    target = memory_url("set-system-prompt", conversation)
    return client.post(target, {"text": text, **values}, headers=HTMX)


def first_message(conversation):
    return context.build_request_context(conversation).wire[0]


def test_system_prompt_is_saved_on_the_page_and_sent(client, conversation):
    notice = save(client, conversation, OWN.replace("\n", "\r\n"), seen="")
    assert "System prompt saved" in notice.content.decode()
    conversation.refresh_from_db()
    assert first_message(conversation) == {"role": "system", "content": OWN}
    assert OWN in html.unescape(page_of(client, conversation))


def test_the_dialog_shows_it(client, conversation):
    actions.set_system_prompt(conversation, OWN)
    shown = client.get(memory_url("system-prompt", conversation)).content.decode()
    assert f">{OWN}</textarea>" in shown
    assert html.escape(settings.SYSTEM_PROMPT) in shown


def test_system_prompt_change_is_undone(client, conversation):
    notice = save(client, conversation, OWN, seen="").content.decode()
    fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', notice))
    target = re.search(r'hx-post="([^"]+)"', notice)[1]
    client.post(target, fields, headers=HTMX)
    conversation.refresh_from_db()
    assert first_message(conversation)["content"] == settings.SYSTEM_PROMPT


def test_earlier_requests_stay_provable(client, conversation):
    save(client, conversation, OWN)
    conversation.refresh_from_db()
    talk_in_turns(conversation, "Ahoy")
    save(client, conversation, "Be brief.")
    conversation.refresh_from_db()
    talk_in_turns(conversation, "Hello again")
    calls = conversation.model_calls.order_by("pk")
    assert [rebuilding.rebuild_context(call).wire[0]["content"] for call in calls] == [
        *(settings.SYSTEM_PROMPT, settings.SYSTEM_PROMPT, OWN, "Be brief."),
    ]
    assert violations() == []
    pane = client.get(url("context", conversation), {"reply": 6}).content.decode()
    assert OWN in pane
    assert "Exactly what was sent" in pane
    # What was sent can't be edited.
    assert memory_url("system-prompt", conversation) not in pane


def test_a_request_that_waited_keeps_what_it_was_built_with(conversation):
    built = context.build_request_context(conversation)
    actions.set_system_prompt(conversation, OWN)
    prompts.keep_texts(conversation, built.texts)
    assert Prompt.objects.filter(pk=built.refs["system"]).exists()


def test_system_prompt_changed_elsewhere_is_not_overwritten(client, conversation):
    save(client, conversation, "Mine", seen="")
    notice = save(client, conversation, "Yours", seen="").content.decode()
    assert "changed elsewhere" in notice
    conversation.refresh_from_db()
    assert conversation.system_prompt == "Mine"


@pytest.mark.parametrize("text", ["x" * 8_001, "a\0b", None])
def test_invalid_system_prompt_is_refused(client, conversation, text):
    values = {} if text is None else {"text": text}
    target = memory_url("set-system-prompt", conversation)
    answer = client.post(target, values, headers=HTMX).content.decode()
    assert 'role="alert"' in answer
    conversation.refresh_from_db()
    assert conversation.system_prompt == ""


def test_a_stranger_gets_the_404_of_a_missing_one(conversation, bob):
    assert save(signed_in(bob), conversation, OWN).status_code == 404


class TestNew:
    def test_system_prompt_is_set_with_a_new_conversation(self, client, db):
        client.post("/c/", {"system_prompt": OWN.replace("\n", "\r\n")})
        assert Conversation.objects.get().system_prompt == OWN

    def test_system_prompt_that_is_too_long_is_refused_and_stays(self, client, db):
        answer = client.post("/c/", {"system_prompt": "x" * 8_001})
        assert answer.status_code == 400
        assert "x" * 8_001 in answer.content.decode()
        assert not Conversation.objects.exists()


class TestCopies:
    def test_a_branch_keeps_it(self, conversation):
        actions.set_system_prompt(conversation, OWN)
        assert copies.branch_conversation(conversation, 2).system_prompt == OWN

    def test_system_prompt_is_erased_with_the_conversation(self, alice):
        made = transcript.create_conversation(alice, system_prompt=OWN)
        talk_in_turns(made, "Hello")
        assert Prompt.objects.filter(text=OWN).exists()
        library.erase_conversation(made)
        assert not Prompt.objects.filter(text=OWN).exists()
