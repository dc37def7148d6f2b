"""The files to download."""

import json
import uuid

import pytest
from asgiref.sync import async_to_sync
from django.db.models.functions import Now
from django.test import Client
from django.urls import reverse

from chatsite.features.importing.exporting.account import export_account
from chatsite.features.importing.files import own
from chatsite.features.importing.files.reading import ImportItemError
from memory import actions, transcript
from memory.models import Conversation
from tests.memory.scenes import compact, summarise

from ...scenes import signed_in, talk_in_turns, url

NAMES = ("export-json", "export-md")
WINDOW = {"strategy": "window", "trigger": ["messages", 6], "keep": ["messages", 2]}


class TestAccess:
    @pytest.mark.parametrize("name", NAMES)
    def test_export_of_a_stranger_is_404_like_a_missing_one(
        self, conversation, bob, name
    ):
        client = signed_in(bob)
        foreign = client.get(url(name, conversation))
        missing = client.get(reverse(f"conversation-{name}", args=[uuid.uuid4()]))
        assert foreign.status_code == missing.status_code == 404
        assert foreign.content == missing.content

    @pytest.mark.parametrize("name", NAMES)
    def test_anonymous_user_is_sent_to_the_login_page(self, conversation, name):
        answer = Client().get(url(name, conversation))
        assert answer.status_code == 302
        assert answer.url.startswith(reverse("login"))

    @pytest.mark.parametrize("name", NAMES)
    def test_export_is_gone_with_the_conversation(self, client, conversation, name):
        client.post(url("delete", conversation))
        assert client.get(url(name, conversation)).status_code == 404


class TestExport:
    @pytest.mark.parametrize("name", ["export-json", "export-md"])
    def test_download_has_a_file_name(self, client, conversation, name):
        Conversation.objects.update(title='../../etc/x"; filename="y\r\nSet-Cookie: a')
        answer = client.get(url(name, conversation))
        name = answer["Content-Disposition"].removeprefix("attachment; filename=")
        assert name.strip('"').startswith(f"conversation-{str(conversation.uuid)[:8]}.")
        assert answer["X-Content-Type-Options"] == "nosniff"

    def test_export_has_both_views(self, client, conversation):
        summarise(conversation, 1, 2)
        value = client.get(url("export-json", conversation)).json()
        assert len(value["messages"]) == 4
        assert len(value["summaries"]) == 1
        calls = [call for call in value["model_calls"] if call["purpose"] == "reply"]
        assert {call["message__seq"] for call in calls} == {2, 4}
        assert calls[0]["refs"]["system"] in value["prompts"]

    def test_markdown_has_a_rule_at_each_summary(self, client, conversation):
        summarise(conversation, 1, 2, text="They said hello.")
        text = client.get(url("export-md", conversation)).content.decode()
        rule = text.index("---8<--- summarised here: #1–#2 (v1)")
        assert text.index("Reply to: Hello") < rule < text.index("What is my budget?")
        assert "> They said hello." in text

    def test_the_text_says_what_each_reply_was_built_from(self, client, conversation):
        call = conversation.model_calls.get(message__seq=4)
        text = client.get(url("export-md", conversation)).content.decode()
        assert "*Built from system prompt, #1–#2, #3; demo;" in text
        assert f"sha256 `{call.sha256}`*" in text

    def test_the_text_has_every_version_of_the_summary(self, client, conversation):
        first = summarise(conversation, 1, 2, text="The first.")
        summarise(conversation, 1, 4, replaces=[first], text="The second.")
        failed = {"status": "failed", "text": "", "error": "timeout"}
        summarise(conversation, 1, 4, **failed)
        text = client.get(url("export-md", conversation)).content.decode()
        versions = text[text.index("# Versions of the summary") :]
        assert "v1 of #1–#2: replaced" in versions
        assert "> The first." in versions
        assert "v2 of #1–#4: current" in versions
        assert "v3 of #1–#4: failed" in versions
        assert "> (The model took too long to answer." in versions

    @pytest.mark.parametrize(
        "text",
        ["\r\n a\u2028b ", "{{ 7*7 }} {x} %s", "👩‍👩‍👧 e\u0301 \u202eabc", "<b>&amp;"],
    )
    def test_texts_are_exported_byte_for_byte(self, client, alice, text):
        made = transcript.create_conversation(alice)
        talk_in_turns(made, text, reply="{}")
        whole = client.get(url("export-json", made)).json()
        assert [row["text"] for row in whole["messages"]] == [text, text]

    def test_export_has_the_settings_of_the_conversation(self, client, conversation):
        actions.set_temperature(conversation, 0.5)
        actions.set_system_prompt(conversation, "Answer in rhyme.")
        exported = client.get(url("export-json", conversation)).json()
        assert exported["conversation"]["temperature"] == 0.5
        assert exported["conversation"]["system_prompt"] == "Answer in rhyme."


@pytest.mark.django_db(transaction=True)
def test_messages_that_left_the_window_come_back_as_they_were(client, alice):
    left = transcript.create_conversation(alice, title="Kyoto", policy=WINDOW)
    talk_in_turns(left, "My cat is Mimi", "One", "Two")
    compact(left)
    talk_in_turns(left, "And now?")
    exported = client.get(url("export-json", left)).json()
    (version,) = exported["summaries"]
    assert (version["text"], version["model"], version["status"]) == ("", "", "active")
    (row,) = own.read_export(exported, alice.pk).bundle.summaries
    assert (row["first_seq"], row["last_seq"], row["status"]) == (1, 4, "active")
    # A summary of a model that has lost its text is refused as before.
    version["model"] = "m"
    with pytest.raises(ImportItemError, match="its text does not fit its status"):
        own.read_export(exported, alice.pk)
    written = client.get(url("export-md", left)).content.decode()
    assert "summarised here" not in written
    assert "left the window here: #1–#4" in written


@pytest.mark.django_db(transaction=True)
def test_temporary_conversations_are_not_in_the_account_file(alice):
    made = transcript.create_conversation(alice, temporary=True)
    talk_in_turns(made, "My word is zebraquark")

    async def take():
        return "".join([part async for part in export_account(alice)])

    taken = async_to_sync(take)()
    assert "zebraquark" not in taken
    assert json.loads(taken)["conversations"] == []


@pytest.mark.django_db(transaction=True)
def test_account_file_is_valid_when_its_first_conversation_is_deleted(alice):
    first, _second = (
        transcript.create_conversation(alice, title=title)
        for title in ("Kyoto", "Nara")
    )

    async def take():
        parts = export_account(alice)
        head = await anext(parts)
        await Conversation.objects.filter(pk=first.pk).aupdate(deleted_at=Now())
        return head + "".join([part async for part in parts])

    taken = json.loads(async_to_sync(take)())
    assert [each["conversation"]["title"] for each in taken["conversations"]] == [
        "Nara"
    ]
