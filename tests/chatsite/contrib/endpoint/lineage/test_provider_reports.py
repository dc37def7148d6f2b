"""The page of why shows what the provider says, beside what this site finds."""

import html
import json

import pytest
from asgiref.sync import async_to_sync
from django.urls import reverse

from bench.endpoint import provider_changes
from bench.memory import provider_omissions
from chatsite.contrib.endpoint import keys
from chatsite.contrib.endpoint.models import ProviderSummary
from chatsite.contrib.endpoint.provider_reports.cache_misses import find_cache_miss
from chatsite.contrib.endpoint.provider_reports.summaries import list_summaries
from chatsite.turns.models import Turn
from memory import actions
from memory.models import Conversation, ModelCall
from memory.view import rebuilding
from tests import rounds
from tests.chatsite.scenes import page_of, url
from tests.fakes.compacting import COMPACT, EDIT, CompactingProvider, sign

from ..asgi_client import Call

pytestmark = pytest.mark.django_db(transaction=True)
PUMP = "The order number of the pump is QX-4471, and the pump goes to Ghent."
ANNEX = "The budget of the annex is 8450 euros, and nobody else knows it yet."
EDITS = {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 60}}
DISPUTE = "The two disagree."


@pytest.fixture
def provider(settings):
    with CompactingProvider() as made:
        settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY = made.url, "sk-test"
        settings.ANTHROPIC_BASE_URL = made.url.removesuffix("/v1")
        settings.ANTHROPIC_API_KEY = "sk-ant"
        yield made


@pytest.fixture
def key(alice, provider):
    return keys.create_api_key(alice, "SDK")[1]


def user(text):
    return {"role": "user", "content": text}


def send(key, messages, path="/v1/messages", **more):
    """The answer; the reply is added to the messages."""
    values = {"model": "claude", "messages": messages, **more}
    if path != "/v1/messages":
        values["input"] = values.pop("messages")
    betas = f"{COMPACT}, {EDIT}"
    call = Call(path, json.dumps(values).encode(), key=key, anthropic_beta=betas)
    async_to_sync(call.run)()
    answer = json.loads(call.answer)
    if "content" in answer:
        messages.append({"role": "assistant", "content": answer["content"]})
    return answer


def show(client, **query):
    conversation = Conversation.objects.latest("pk")
    path = reverse("endpoint-why", args=[conversation.uuid])
    return html.unescape(client.get(path, query).content.decode())


def compact(key, provider):
    said = [user(PUMP)]
    send(key, said)
    said.append(user(ANNEX))
    provider.forgotten.add(PUMP)
    send(key, said, context_management={"edits": [EDITS]})
    return said


def test_page_names_what_the_summary_of_the_provider_lacks(client, key, provider):
    compact(key, provider)
    page = show(client)
    assert "In place of messages #1–#3" in page
    assert "QX-4471" in page
    assert ANNEX in page
    details = page.partition('<details class="dropped">')[2].partition("</details>")[0]
    assert "QX-4471" in details
    assert "annex is 8450" not in details


def test_summary_in_a_stream_is_kept_as_it_was_sent(key, provider):
    said = [user(PUMP)]
    send(key, said)
    said.append(user(ANNEX))
    values = {"model": "claude", "messages": said, "stream": True}
    values["context_management"] = {"edits": [EDITS]}
    raw = json.dumps(values).encode()
    call = Call("/v1/messages", raw, key=key, anthropic_beta=EDIT)
    async_to_sync(call.run)()
    assert call.answer == bytes(provider.requests[-1].answered)
    row = ProviderSummary.objects.get()
    block = json.loads(row.block)
    assert block["content"] == f"{PUMP}\nReply to: {PUMP}\n{ANNEX}"
    assert block["signature"] == sign(block["content"])
    assert block["encrypted_content"].startswith("meta-")
    used = row.call.of_client.report["iterations"]
    assert [kind for kind, *_ in used] == ["compaction", "message"]
    assert row.call.tokens_input == sum(read for _, read, *_ in used)
    assert row.call.message.text == f"Reply to: {ANNEX}"


@pytest.mark.parametrize("how", ["alone", "before a reply"])
def test_failed_summary_of_the_provider_is_none(key, provider, how):
    provider.fails = True
    talks = [[user(f"{PUMP} {n}")] for n in range(2)]
    for said in talks:
        send(key, said)
        if how == "alone":
            send(key, said, compaction={"type": "summarize"})
        else:
            said.append(user(ANNEX))
            send(key, said, context_management={"edits": [EDITS]})
    assert not ProviderSummary.objects.exists()
    # Alike as they are, they lead to no other conversation.
    for said in talks:
        send(key, [*said, user("And now?")])
    assert Conversation.objects.count() == 2
    send(key, [talks[0][-1], user("And here?")])
    texts = [
        [*each.messages.order_by("seq").values_list("text", flat=True)]
        for each in Conversation.objects.order_by("pk")[:2]
    ]
    assert [said[0] for said in texts] == [f"{PUMP} 0", f"{PUMP} 1"]
    assert not any("And here?" in said for said in texts)


def test_summary_in_place_of_a_reply_waits_for_it(key, provider):
    said = [user(PUMP)]
    send(key, said)
    said.append(user(ANNEX))
    send(key, said, compaction={"type": "summarize"})
    turn = Turn.objects.latest("pk")
    assert (turn.state, turn.error, turn.reply) == ("stopped", "compacted", None)
    send(key, said[-1:])
    turn = Turn.objects.latest("pk")
    assert (turn.state, turn.user_message.text) == ("done", ANNEX)
    assert Conversation.objects.count() == 1


def test_summary_is_erased_with_a_message_that_it_covers(client, key, provider):
    compact(key, provider)
    actions.delete_message(Conversation.objects.get(), 3)
    assert ProviderSummary.objects.get().block == ""
    page = show(client)
    assert "It was erased with a message that it covered." in page
    assert "annex is 8450" not in page


def test_opaque_summary_is_readable_only_by_the_provider(client, key, provider):
    said = [user(PUMP)]
    answer = send(key, said, "/v1/responses")
    send(key, [*said, *answer["output"]], "/v1/responses/compact")
    page = show(client)
    assert "Readable only by the provider." in page
    assert "40 tokens" in page


def test_page_notes_iterations_that_do_not_sum(client, key, provider):
    provider.extra_tokens = 7
    compact(key, provider)
    assert "The sum of all iterations was charged." in show(client)
    assert "was charged" not in show(client, reply=2)


def test_page_notes_a_summary_that_the_client_changed(client, key, provider):
    said = compact(key, provider)
    send(key, [*said, user("And now?")])
    assert "not as the provider sent" not in show(client)
    said[-1]["content"][0]["signature"] = "forged"
    assert send(key, [*said, user("And then?")])["type"] == "error"
    assert "is not as the provider sent it." in show(client)
    # One that was made elsewhere is none that the client changed.
    made = {"content": "Made elsewhere.", "signature": sign("Made elsewhere.")}
    elsewhere = {"role": "assistant", "content": [{"type": "compaction", **made}]}
    send(key, [elsewhere, user("And here?")])
    assert "not as the provider sent" not in show(client)


def test_page_counts_messages_that_only_another_provider_can_read(
    client, key, provider
):
    said = compact(key, provider)
    reply = said[-1]["content"][-1]["text"]
    # Its own client can't take the summary along.
    later = [{"role": "assistant", "content": reply}, user("And the pump?")]
    send(key, later, "/v1/responses", model="gpt")
    assert Conversation.objects.count() == 1
    page = show(client)
    assert "3 messages were only in the summary that messages made" in page
    assert "only in the summary" not in show(client, reply=4)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"model": "claude-2"}, "another model, or another speed"),
        ({"system": "Be long."}, "the instructions have changed"),
        ({"tools": []}, "the list of tools has changed"),
    ],
)
def test_causes_of_provider_and_site_stand_together(
    client, key, provider, change, words
):
    same = {"system": "Be brief.", "tools": [{"name": "look", "input_schema": {}}]}
    said = [user(PUMP)]
    first = send(key, said, **same, diagnostics={"previous_message_id": None})
    assert "cache ends" not in show(client)
    said.append(user(ANNEX))
    named = {"diagnostics": {"previous_message_id": first["id"]}}
    send(key, said, **same, **named)
    assert "cache ends" not in show(client)
    said.append(user("And now?"))
    send(key, said, **{**same, **change}, **named)
    page = show(client)
    assert f"The provider says: {words}." in page
    assert f"This site finds: {words}." in page
    assert DISPUTE not in page


def test_disagreements_are_marked(client, key, provider, monkeypatch):
    said = [user(PUMP)]
    first = send(key, said, system="Be brief.")
    said.append(user(ANNEX))
    named = {"diagnostics": {"previous_message_id": first["id"]}}
    find = "tests.fakes.compacting.find_reason"
    monkeypatch.setattr(find, lambda *bodies: "messages_changed")
    send(key, said, system="Be long.", **named)
    page = show(client)
    assert "The provider says: earlier messages have changed." in page
    assert "This site finds: the instructions have changed." in page
    assert DISPUTE in page
    # Without an answer, there is nothing to disagree with.
    monkeypatch.setattr(find, lambda *bodies: "unavailable")
    named = {"diagnostics": {"previous_message_id": "msg_unknown"}}
    send(key, [*said, user("And now?")], system="Be long.", **named)
    page = show(client)
    assert "it does not know the reply to compare with" in page
    assert DISPUTE not in page


# The whole measures are those of the programs in bench.
CHANGES, FACTS = rounds.choose(21, 42), 200


def test_first_causes_are_the_reasons_of_the_provider(key, provider, settings):
    settings.MESSAGES_PER_MINUTE = settings.CONVERSATIONS_PER_MINUTE = 100_000
    asked = provider_changes.play(CHANGES, 7, lambda body: send(key, **body))
    calls = ModelCall.objects.select_related("of_client", "conversation")
    found = {each.of_client.response_id: find_cache_miss(each) for each in calls}
    found = {n: m and [m.said, m.found, m.is_disputed] for n, m in found.items()}
    assert provider_changes.compare(asked, found) == []
    reasons = {reason for _, reason in asked.values()}
    assert reasons == {
        *("model_changed", "system_changed", "tools_changed", "messages_changed"),
        *("unavailable", None),
    }
    assert not any(miss[2] for miss in found.values() if miss)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_planted_facts_that_a_summary_lost_are_named(key, provider, seed, monkeypatch):
    talk = provider_omissions.plant(FACTS, seed)
    monkeypatch.setattr(provider, "summarise", lambda texts: talk.summary)
    roles = ("user", "assistant")
    said = [
        {"role": roles[n % 2], "content": text} for n, text in enumerate(talk.texts)
    ]
    said.pop()
    send(key, said)
    answer = send(key, said, compaction={"type": "summarize"})
    assert answer["stop_reason"] == "compaction"
    [shown] = list_summaries(Conversation.objects.get())
    recall, false, missed = talk.judge(each.seq for each in shown.dropped)
    assert recall >= 0.9, missed
    assert false <= 0.05
    assert shown.unsupported == []


def test_transcript_notes_where_the_provider_summarised(client, key, provider):
    compact(key, provider)
    made = Conversation.objects.get()
    page = html.unescape(page_of(client, made))
    note = "The provider summarised everything up to here."
    _, _, after = page.partition('id="message-3"')
    assert page.count(note) == 1
    assert note in after.partition('id="message-4"')[0]
    pane = client.get(url("context", made), {"reply": 4}).content.decode()
    assert "The provider summarised messages before it" in pane
    pane = client.get(url("context", made), {"reply": 2}).content.decode()
    assert "The provider summarised messages before it" not in pane


def change_tool(kind, **tool):
    return {"role": "system", "content": [{"type": f"tool_{kind}", "tool": tool}]}


def test_tools_are_those_as_of_the_request(client, key, provider):
    tools = [{"name": n, "input_schema": {}} for n in ("look", "add", "sing")]
    said = [user(PUMP)]
    send(key, said, tools=tools)
    named = {"type": "tool_reference"}
    made = {"name": "dance", "input_schema": {"type": "object"}}
    said += [
        change_tool("removal", **named, name="add"),
        change_tool("removal", **named, name="sing"),
        change_tool("addition", **named, name="sing"),
        change_tool("addition", type="tool_definition", definition=made),
        user(ANNEX),
    ]
    send(key, said, tools=tools)
    calls = ModelCall.objects.order_by("pk")
    names = [
        [tool["name"] for tool in rebuilding.rebuild_context(call).tools]
        for call in calls
    ]
    assert names == [["look", "add", "sing"], ["look", "sing", "dance"]]
    assert all(rebuilding.is_sent(c, rebuilding.rebuild_context(c)) for c in calls)
    # Tools that are added in the history leave the beginning as it was.
    assert "the list of tools has changed" not in show(client)


def test_summary_in_place_of_a_reply_is_charged_to_the_key(key, provider):
    said = [user(PUMP)]
    send(key, said)
    said.append(user(ANNEX))
    before = keys.ApiKey.objects.get().tokens_used
    send(key, said, compaction={"type": "summarize"})
    call = ModelCall.objects.latest("pk")
    spent = keys.ApiKey.objects.get().tokens_used - before
    assert spent == call.tokens_input + call.tokens_output > 0
