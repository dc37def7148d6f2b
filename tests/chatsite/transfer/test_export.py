"""The owner's JSON views and the files to take away."""

import hashlib
import json

import pytest

from chatsite.turns import commands, lifecycle
from memory import transcript
from memory.models import Conversation
from tests.memory.scenes import summarise

from ..scenes import talk_in_turns, url

TEXTS = (
    "\r\n a\u2028b ",
    "{{ 7*7 }} {x} %s",
    "👩\u200d👩\u200d👧 e\u0301 \u202eabc",
    "<b>&amp;",
)


def get(client, name, conversation, **query):
    return client.get(url(name, conversation), query).json()


class TestJson:
    def test_it_gives_the_transcript(self, client, conversation):
        answer = client.get(url("transcript", conversation)).json()
        rows = answer["messages"]
        assert [row["seq"] for row in rows] == [1, 2, 3, 4]
        assert rows[3]["text"] == "Reply to: What is my budget?"
        assert (rows[3]["role"], rows[3]["state"]) == ("assistant", "done")
        assert (rows[3]["model"], rows[2]["model"]) == ("demo", "")

    def test_it_lists_a_running_reply_in_its_place(self, client, conversation):
        commands.submit_message(conversation, text="One", client_id="1")
        commands.submit_message(conversation, text="Two", client_id="2")
        lifecycle.checkpoint(lifecycle.claim(conversation.pk), "Part")
        rows = client.get(url("transcript", conversation)).json()["messages"]
        assert [row["seq"] for row in rows] == [1, 2, 3, 4, 5, 6, 7]
        assert (rows[5]["text"], rows[5]["state"]) == ("Part", "running")
        assert rows[6]["state"] == "queued"

    @pytest.mark.parametrize(
        "text",
        ["\r\n a\u2028b ", "{{ 7*7 }} {x} %s", "👩‍👩‍👧 e\u0301 \u202eabc", "<b>&amp;"],
    )
    def test_it_gives_texts_byte_for_byte(self, client, alice, text):
        made = transcript.create(alice)
        talk_in_turns(made, text, reply="{}")
        rows = client.get(url("transcript", made)).json()["messages"]
        assert [row["text"] for row in rows] == [text, text]
        whole = client.get(url("export-json", made)).json()
        assert [row["text"] for row in whole["messages"]] == [text, text]

    def test_it_gives_the_context_with_its_hash(self, client, conversation):
        value = client.get(url("context-json", conversation), {"reply": 4}).json()
        canonical = json.dumps(
            value["messages"], ensure_ascii=False, sort_keys=True, separators=(",", ":")
        )
        assert hashlib.sha256(canonical.encode()).hexdigest() == value["sha256"]
        assert value["messages"][-1]["content"] == "What is my budget?"
        assert value["tokens"]["reported"] == 40
        assert value["refs"]["newest"] == 3

    def test_it_gives_what_would_be_sent_now(self, client, conversation):
        value = client.get(url("context-json", conversation)).json()
        assert value["tokens"]["reported"] is None
        assert len(value["messages"]) == 5

    def test_it_gives_every_summary(self, client, conversation):
        first = summarise(conversation, 1, 2)
        summarise(conversation, 1, 4, replaces=[first])
        rows = client.get(url("summaries", conversation)).json()["summaries"]
        assert [(row["version"], row["status"]) for row in rows] == [
            (1, "superseded"),
            (2, "active"),
        ]
        assert rows[1]["folded_from"] == [1]
        assert rows[1]["trigger"]["kind"] == "messages"


class TestExport:
    @pytest.mark.parametrize("name", ["export-json", "export-md"])
    def test_it_names_the_file_itself(self, client, conversation, name):
        Conversation.objects.update(title='../../etc/x"; filename="y\r\nSet-Cookie: a')
        answer = client.get(url(name, conversation))
        name = answer["Content-Disposition"].removeprefix("attachment; filename=")
        assert name.strip('"').startswith(f"conversation-{str(conversation.uuid)[:8]}.")
        assert answer["X-Content-Type-Options"] == "nosniff"

    def test_it_holds_both_views(self, client, conversation):
        summarise(conversation, 1, 2)
        value = client.get(url("export-json", conversation)).json()
        assert len(value["messages"]) == 4
        assert len(value["summaries"]) == 1
        calls = [call for call in value["model_calls"] if call["purpose"] == "reply"]
        assert {call["message__seq"] for call in calls} == {2, 4}
        assert calls[0]["refs"]["system"] in value["prompts"]

    def test_it_draws_a_rule_where_messages_were_summarised(self, client, conversation):
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
        assert "v1 of #1–#2: superseded" in versions
        assert "> The first." in versions
        assert "v2 of #1–#4: active" in versions
        assert "v3 of #1–#4: failed" in versions
        assert "> (The model took too long to answer." in versions
