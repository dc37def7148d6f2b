"""The owner's JSON views."""

import hashlib
import json

import pytest

from chatsite.turns import commands, lifecycle
from memory import transcript
from tests.memory.scenes import summarise

from ..scenes import talk_in_turns, url


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
        made = transcript.create_conversation(alice)
        talk_in_turns(made, text, reply="{}")
        rows = client.get(url("transcript", made)).json()["messages"]
        assert [row["text"] for row in rows] == [text, text]

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
