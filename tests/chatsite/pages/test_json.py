"""The owner's JSON views."""

import hashlib
import json

import pytest

from chatsite.features.tools import registry
from chatsite.pages.presenters import context_pane
from chatsite.turns import attempt, commands, lifecycle
from memory import actions, transcript
from memory.models import Conversation
from tests.memory.scenes import summarise

from ..scenes import submit, talk_in_turns, url


def answer_with_tools(turn):
    """End the turn after a request that offers the tools of its conversation."""
    tools = registry.offer_now(turn.conversation)
    claim = lifecycle.claim(turn.conversation_id)
    request = attempt.prepare_attempt(claim, tools=tools)
    claim = lifecycle.begin(claim, request.built, "demo")
    lifecycle.finish(claim, lifecycle.TurnResult("done", "Reply", tokens_input=900))


class TestJson:
    def test_json_has_the_transcript(self, client, conversation):
        answer = client.get(url("transcript", conversation)).json()
        rows = answer["messages"]
        assert [row["seq"] for row in rows] == [1, 2, 3, 4]
        assert rows[3]["text"] == "Reply to: What is my budget?"
        assert (rows[3]["role"], rows[3]["state"]) == ("assistant", "done")
        assert (rows[3]["model"], rows[2]["model"]) == ("demo", "")

    def test_json_lists_a_running_reply_in_its_place(self, client, conversation):
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
    def test_json_has_texts_byte_for_byte(self, client, alice, text):
        made = transcript.create_conversation(alice)
        talk_in_turns(made, text, reply="{}")
        rows = client.get(url("transcript", made)).json()["messages"]
        assert [row["text"] for row in rows] == [text, text]

    def test_json_has_the_context_with_its_hash(self, client, conversation):
        value = client.get(url("context-json", conversation), {"reply": 4}).json()
        canonical = json.dumps(
            value["messages"], ensure_ascii=False, sort_keys=True, separators=(",", ":")
        )
        assert hashlib.sha256(canonical.encode()).hexdigest() == value["sha256"]
        assert value["messages"][-1]["content"] == "What is my budget?"
        assert value["tokens"]["reported"] == 40
        assert value["refs"]["newest"] == 3

    def test_json_has_the_next_request(self, client, conversation):
        value = client.get(url("context-json", conversation)).json()
        assert value["tokens"]["reported"] is None
        assert len(value["messages"]) == 5

    @pytest.mark.parametrize("overhead", [0, 20, 3_000])
    def test_parts_of_the_context_sum_to_its_tokens(self, client, alice, overhead):
        made = transcript.create_conversation(alice, tools=["calculate"])
        talk_in_turns(made, "One", "Two")
        rows = Conversation.objects.filter(pk=made.pk)
        rows.update(token_ratio=1.37, token_overhead=overhead)
        for query in ({}, {"reply": 2}):
            value = client.get(url("context-json", made), query).json()
            sizes = {part["name"]: part["tokens"] for part in value["parts"]}
            assert len(sizes) == len(value["parts"])
            assert sum(sizes.values()) == value["tokens"]["estimated"]
        value = client.get(url("context-json", made)).json()
        assert [each["function"]["name"] for each in value["tools"]] == ["calculate"]
        assert value["parts"][0]["name"] == "tools"
        view = context_pane.model_view(rows.get())
        shown = {sheet.kind: sheet.tokens for sheet in view.sheets if sheet.tokens}
        free = shown.pop("free")
        assert shown == {part["name"]: part["tokens"] for part in value["parts"]}
        gauge = view.gauge
        assert sum(shown.values()) + free + gauge.reserve == gauge.capacity

    def test_figures_of_a_past_request_stay(self, client, alice):
        made = transcript.create_conversation(alice, tools=["calculate"])
        sent = submit(made, "One")
        answer_with_tools(sent.turn)
        before = client.get(url("context-json", made), {"reply": 2}).json()
        assert before["refs"]["tools"] == ["calculate"]
        canonical = json.dumps(
            before["tools"], ensure_ascii=False, sort_keys=True, separators=(",", ":")
        )
        digest = hashlib.sha256(canonical.encode()).hexdigest()
        assert digest == before["refs"]["tools_sha256"]
        rows = Conversation.objects.filter(pk=made.pk)
        rows.update(token_ratio=3.0, token_overhead=500, tools=["current_time"])
        talk_in_turns(made, "Two")
        assert client.get(url("context-json", made), {"reply": 2}).json() == before
        made.refresh_from_db()
        actions.delete_message(made, 1)
        after = client.get(url("context-json", made), {"reply": 2}).json()
        assert (after["parts"], after["tokens"]) == (before["parts"], before["tokens"])

    def test_json_has_every_summary(self, client, conversation):
        first = summarise(conversation, 1, 2)
        summarise(conversation, 1, 4, replaces=[first])
        rows = client.get(url("summaries", conversation)).json()["summaries"]
        assert [(row["version"], row["status"]) for row in rows] == [
            (1, "superseded"),
            (2, "active"),
        ]
        assert rows[1]["folded_from"] == [1]
        assert rows[1]["trigger"]["kind"] == "messages"
