"""The socket end to end: real consumer, runner, layer and database; the model is the
fake provider over HTTP or the demo model.
"""

import asyncio

import pytest
from channels.db import database_sync_to_async
from django.db import models
from django.db.models.functions import Now
from django.test import Client

from chatsite.pages.presenters import thread_json
from chatsite.turns import checkpoints, runner
from memory import actions, transcript
from memory.compaction import compactor
from memory.engine.compose import digest_wire
from memory.integrity import audit, signatures
from memory.models import Conversation, Message, ModelCall
from memory.view import rebuilding
from tests.clients import text_of
from tests.memory.scenes import add_turns, summarise

from ..sockets import TIMEOUT, Chat

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def conversation(alice):
    return transcript.create_conversation(alice, preset="langgraph")


async def rows(conversation):
    messages = await database_sync_to_async(list)(conversation.messages.order_by("seq"))
    return [(row.role, row.text) for row in messages]


async def test_socket_acknowledges_then_streams_then_ends(
    conversation, session, upstream
):
    async with Chat(conversation, session) as chat:
        await chat.command(type="send", client_id="c1", text="Hello there")
        events = await chat.until("end")
    ack = next(event for event in events if event["type"] == "ack")
    assert (ack["client_id"], ack["seq"], ack["position"]) == ("c1", 1, 0)
    assert events[-1]["state"] == "done"
    assert text_of(events) == events[-1]["text"]
    stored = await rows(conversation)
    assert stored == [("user", "Hello there"), ("assistant", events[-1]["text"])]


async def test_sent_context_equals_the_one_that_is_shown(
    conversation, session, upstream
):
    async with Chat(conversation, session) as chat:
        for number in range(12):
            await chat.say(f"Message {number} with the fact {number}00")
            await asyncio.gather(*runner._tasks)

    def check():
        calls = ModelCall.objects.filter(purpose="reply").order_by("id")
        bodies = [r.messages for r in upstream.requests if not is_summary(r)]
        assert [rebuilding.rebuild_context(call).wire for call in calls] == bodies
        assert all(rebuilding.verify_context(call) for call in calls)
        active = conversation.summaries.filter(status="active").get()
        assert active.version >= 2

    await database_sync_to_async(check)()


def is_summary(request):
    return request.messages[0]["content"].startswith("[windowpane:summarise]")


async def test_the_same_message_sent_twice_is_answered_once(
    conversation, session, upstream
):
    async with Chat(conversation, session) as chat:
        for _ in range(3):
            await chat.command(type="send", client_id="same", text="Once")
        await chat.until("end")
        acks = 1
        await chat.command(type="sync")
        acks += sum(e["type"] == "ack" for e in await chat.until("end"))
    assert len(await rows(conversation)) == 2
    assert len(upstream.requests) == 1


async def test_messages_sent_while_one_is_answered_wait_in_order(
    conversation, session, upstream, settings
):
    settings.CHAT_MODEL = "ok-slow:20:0.02"
    async with Chat(conversation, session) as chat:
        for number in range(3):
            await chat.command(type="send", client_id=f"c{number}", text=f"Q{number}")
        events = []
        for _ in range(3):
            events += await chat.until("end")
    acks = [event for event in events if event["type"] == "ack"]
    assert [ack["position"] for ack in acks] == [0, 1, 2]
    roles = [role for role, _ in await rows(conversation)]
    assert roles == ["user", "assistant"] * 3
    last = [request.messages[-1]["content"] for request in upstream.requests]
    assert last == ["Q0", "Q1", "Q2"]


async def test_stop_keeps_the_text_and_closes_the_upstream(
    conversation, session, upstream, settings
):
    settings.CHAT_MODEL = "ok-slow:500:0.02"
    async with Chat(conversation, session) as chat, Chat(conversation, session) as tab:
        await chat.command(type="send", client_id="c", text="Tell me a lot")
        frame = (await chat.until("frame"))[-1]
        await tab.command(type="stop", turn=frame["turn"])
        here = await chat.until("end")
        there = await tab.until("end")
    assert here[-1] == there[-1]
    assert here[-1]["state"] == "stopped"
    assert 0 < len(here[-1]["text"]) < 1000
    assert (await rows(conversation))[1][1] == here[-1]["text"]
    await asyncio.sleep(0.3)
    assert upstream.closed_early == 1


async def test_a_second_tab_joins_in_the_middle(
    conversation, session, upstream, settings, monkeypatch
):
    monkeypatch.setattr(checkpoints, "CHECKPOINT_SECONDS", 0.2)
    settings.CHAT_MODEL = "ok-slow:40:0.03"
    async with Chat(conversation, session) as chat:
        await chat.command(type="send", client_id="c", text="Go on")
        await chat.until("frame")
        await asyncio.sleep(0.4)
        async with Chat(conversation, session) as tab:
            await tab.command(type="sync")
            seen = await tab.follow()
        first = await chat.until("end")
    assert text_of(seen) == seen[-1]["text"] == first[-1]["text"]


async def test_a_closed_socket_does_not_end_the_reply(
    conversation, session, upstream, settings
):
    settings.CHAT_MODEL = "ok-slow:20:0.02"
    async with Chat(conversation, session) as chat:
        await chat.command(type="send", client_id="c", text="Go on")
        await chat.until("frame")
    turn = await conversation.turns.select_related("reply").aget()
    assert turn.state == "done"
    assert turn.reply.text


async def test_deleting_the_conversation_ends_its_reply_quietly(
    conversation, session, upstream, settings, caplog
):
    settings.CHAT_MODEL = "ok-slow:500:0.02"
    async with Chat(conversation, session) as chat:
        await chat.command(type="send", client_id="c", text="Go on")
        await chat.until("frame")
        await database_sync_to_async(conversation.delete)()
    assert await asyncio.to_thread(upstream.wait_closed_early)
    assert not [r for r in caplog.records if r.levelname == "ERROR"]


@pytest.mark.parametrize(
    ("mode", "state", "error"),
    [
        ("length", "truncated", "length"),
        ("eof", "truncated", "no_finish_reason"),
        ("reason:max_tokens", "truncated", "length"),
        ("reason:model_length", "truncated", "length"),
        ("reason:insufficient_system_resource", "truncated",
         "cut_off:insufficient_system_resource"),
        ("reason:abort", "truncated", "cut_off:abort"),
        ("reason:error", "truncated", "cut_off:error"),
        ("reason:end_turn", "done", ""),
        ('usage:{"prompt_tokens";-1,"completion_tokens";4}', "done", ""),
        ('usage:{"prompt_tokens";99999999999,"completion_tokens";9e30}', "done", ""),
        ("think", "done", ""),
        ("only-reasoning", "failed", "only_reasoning"),
        ("402", "failed", "quota"),
        ("done-only", "failed", "bad_response"),
        ("content_filter", "failed", "content_filter"),
        ("reset", "failed", "unavailable"),
        ("bad-json", "failed", "bad_response"),
        ("error-event", "failed", "unavailable"),
        ("401", "failed", "auth"),
        ("400-context", "failed", "context_length"),
        ("500", "failed", "unavailable"),
        ("nul", "done", ""),
    ],
)  # fmt: skip
async def test_every_upstream_fault_ends_the_turn(
    conversation, session, upstream, settings, mode, state, error
):
    settings.CHAT_MODEL = mode
    settings.MODEL_MAX_ATTEMPTS = 1
    async with Chat(conversation, session) as chat:
        end = await chat.say("Hello")
    turn = await conversation.turns.aget()
    assert (end["state"], turn.error) == (state, error)
    assert (await rows(conversation))[0] == ("user", "Hello")


@pytest.mark.parametrize(
    ("mode", "roles"),
    [
        ("strict:system", ["user", "user"]),
        ("strict:alternation", ["system", "user"]),
        ("strict:stream_options:system:alternation", ["user"]),
    ],
)
async def test_a_refused_form_is_changed_recorded_and_remembered(
    conversation, session, upstream, settings, mode, roles
):
    settings.CHAT_MODEL = "500"
    settings.MODEL_MAX_ATTEMPTS = 1
    async with Chat(conversation, session) as chat:
        await chat.say("Lost")
        settings.CHAT_MODEL = mode
        # Two messages of the user in a row, of which the first has no reply.
        ends = [await chat.say("Hello"), await chat.say("Again")]
        await asyncio.gather(*runner._tasks)
    assert [end["state"] for end in ends] == ["done", "done"]

    def check():
        calls = ModelCall.objects.filter(purpose="reply").order_by("id")
        assert all(rebuilding.verify_context(call) for call in calls)
        bodies = [r.messages for r in upstream.requests if is_turn(r)]
        sent = [rebuilding.rebuild_context(call).wire for call in calls]
        # Fields alone are no other form: the request that lacked them has no row.
        assert [wire for wire in bodies if wire in sent] == bodies
        assert sent[-2:] == bodies[-2:]
        assert [each["role"] for each in bodies[-2]][: len(roles)] == roles
        assert calls.last().refs["shape"]
        answered = [call for call in calls if not call.error]
        assert len(answered) == 2
        page = thread_json.describe_context(conversation, answered[0].message.seq)
        assert (page["messages"], page["sha256"]) == (bodies[-2], answered[0].sha256)
        turn = conversation.turns.last()
        assert turn.attempt == 1

    await database_sync_to_async(check)()
    assert upstream.calls[-1].body["model"] == mode


def is_turn(request):
    first = request.messages[0]["content"]
    return not first.startswith(("[windowpane:summarise]", "[windowpane:title]"))


@pytest.mark.parametrize(
    ("mode", "state", "error"),
    [
        ("eof", "failed", "TruncatedSummary"),
        ("reason:model_length", "failed", "TruncatedSummary"),
        ("refusal", "failed", "RefusedSummary"),
        ("strict:stream_options:system", "folded", ""),
    ],
)
async def test_a_summary_is_judged_and_recorded_as_it_was_sent(
    conversation, upstream, settings, mode, state, error
):
    settings.SUMMARY_MODEL = mode
    await database_sync_to_async(add_turns)(conversation, 5)
    model = runner.make_summariser(mode, payer=conversation.owner_id)
    outcome = await compactor.compact_conversation(
        conversation.pk, model, context_window=32_000
    )
    assert (outcome.state, outcome.error) == (state, error)

    def check():
        row = conversation.summaries.get()
        assert (row.status == "active") is (state == "folded")
        call = conversation.model_calls.get(purpose="summary")
        assert call.sha256 == digest_wire(upstream.calls[-1].messages)
        assert bool(call.refs.get("shape")) is mode.startswith("strict")

    await database_sync_to_async(check)()


@pytest.mark.parametrize("mode", ["think", "think:closed", "think:channel"])
async def test_reasoning_is_kept_beside_the_answer(
    conversation, session, upstream, settings, mode
):
    settings.CHAT_MODEL = mode
    async with Chat(conversation, session) as chat:
        end = await chat.say("Hello")
        await chat.say("Again")
    assert end["text"] == "Hello there!"
    reply = await conversation.messages.aget(seq=2)
    assert reply.reasoning == "The user greets me. I shall greet back."
    second = [r for r in upstream.requests if is_turn(r)][-1]
    assert "greets me" not in str(second.messages)

    def check():
        told = list(thread_json.list_messages(conversation))[1]
        assert told["reasoning"] == reply.reasoning
        assert signatures.has_valid_signature(reply)
        assert list(audit.check_memory()) == []
        rows = models.QuerySet(Message).filter(pk=reply.pk)
        rows.update(reasoning="Something else.")
        assert not signatures.has_valid_signature(rows.get())
        assert [found.code for found in audit.check_memory()] == ["signature.message"]
        rows.update(reasoning=reply.reasoning)
        actions.delete_message(conversation, 2)
        gone = conversation.messages.get(seq=2)
        assert (gone.text, gone.reasoning) == ("", "")
        assert signatures.has_valid_signature(gone)
        assert list(audit.check_memory()) == []

    await database_sync_to_async(check)()


async def test_a_context_that_is_too_long_is_sent_once_more_and_smaller(
    alice, session, upstream
):
    conversation = await database_sync_to_async(transcript.create_conversation)(alice)
    async with Chat(conversation, session) as chat:
        for number in range(3):
            await chat.say(f"Tell me about {number}. " + "Words. " * 50)
        upstream.script("400-context")
        done = await chat.say("Newest")
        # The second is taken by the summary that should make room.
        upstream.script("400-context", "400-context", "400-context")
        failed = await chat.say("And now?")
    assert (done["state"], failed["state"]) == ("done", "failed")
    asked = [r for r in upstream.requests if not is_summary(r)]
    assert len(asked) == 3 + 2 + 2
    assert len(str(asked[4].messages)) < len(str(asked[3].messages))
    assert asked[4].messages[-1]["content"] == "Newest"
    errors = ModelCall.objects.exclude(error="").values_list("error", flat=True)
    assert [error async for error in errors] == ["context_length"] * 4


async def test_a_context_that_can_not_fit_is_not_sent(
    conversation, session, upstream, settings
):
    async with Chat(conversation, session) as chat:
        await chat.say("Words. " * 100)
        await conversation.messages.filter(seq=1).aupdate(pinned_at=Now())
        await database_sync_to_async(summarise)(conversation, 1, 2)
        asked, settings.CONTEXT_WINDOW = len(upstream.requests), 150
        failed = await chat.say("Short")
    assert failed["state"] == "failed"
    assert (await conversation.turns.alast()).error == "context_length"
    assert len([r for r in upstream.requests[asked:] if not is_summary(r)]) == 0


async def test_a_failed_turn_can_be_retried(conversation, session, upstream, settings):
    settings.MODEL_MAX_ATTEMPTS = 1
    upstream.script("500", "ok")
    async with Chat(conversation, session) as chat:
        failed = await chat.say("Hello")
        await chat.command(type="retry", turn=failed["turn"])
        done = (await chat.until("end"))[-1]
    assert (failed["state"], done["state"]) == ("failed", "done")
    assert len(await rows(conversation)) == 2


async def test_an_edit_sends_again_from_there(conversation, session, upstream):
    async with Chat(conversation, session) as chat:
        await chat.say("First")
        await chat.say("Second")
        await chat.command(type="edit", seq=3, client_id="e", text="Better")
        await chat.until("end")
    sent = [message["content"] for message in upstream.requests[-1].messages]
    assert "Second" not in sent
    assert sent[-1] == "Better"


BAD_FRAMES = [
    ("{bad", "bad_frame"),
    ("[1]", "bad_frame"),
    ("5", "bad_frame"),
    ("null", "bad_frame"),
    ('{"type":"send","text":"a","client_id":"a","text":"b"}', "bad_frame"),
    ("[" * 100_000, "bad_frame"),
    ('{"type":"stop","turn":' + "9" * 5000 + "}", "bad_frame"),
    ('{"type":"stop","turn":-1}', "bad_frame"),
    ('{"type":"stop","turn":true}', "bad_frame"),
    ('{"type":"stop"}', "bad_frame"),
    ('{"type":"stop","turn":999999}', "not_found"),
    ('{"type":"retry","turn":"9223372036854775807"}', "not_found"),
    ('{"type":"dance"}', "unknown_command"),
    ('{"type":["send"]}', "unknown_command"),
    ("{}", "unknown_command"),
    ('{"type":"send","client_id":"c"}', "bad_text"),
    ('{"type":"send","text":"x"}', "bad_client_id"),
    ('{"type":"send","client_id":"c","text":""}', "empty"),
    ('{"type":"send","client_id":"c","text":"  \\n "}', "empty"),
    ('{"type":"send","client_id":"c","text":"\\u200b\\u202e\\u00ad"}', "empty"),
    # Whether it may be empty depends on the files of the message.
    ('{"type":"edit","seq":1,"client_id":"c","text":"\\u2060"}', "not_found"),
    ('{"type":"send","client_id":"c","text":"a\\u0000b"}', "bad_text"),
    ('{"type":"send","client_id":"c","text":"a\\ud800b"}', "bad_text"),
    ('{"type":"send","client_id":"c","text":"' + "x" * 32_001 + '"}', "too_long"),
    ("x" * 400_001, "too_long"),
]


async def test_bad_frames_get_an_error_and_the_socket_stays_open(conversation, session):
    async with Chat(conversation, session) as chat:
        for frame, code in BAD_FRAMES:
            await chat.socket.send_to(text_data=frame)
            error = await chat.event()
            assert (error["type"], error["code"]) == ("error", code), frame[:60]
            assert error["detail"].endswith(".")
        await chat.socket.send_to(bytes_data=b"\x00\xff")
        assert (await chat.event())["code"] == "bad_frame"
        assert await rows(conversation) == []
        assert (await chat.say("Still here"))["state"] == "done"


async def test_an_error_names_the_message_it_refuses(conversation, session):
    async with Chat(conversation, session) as chat:
        await chat.command(type="send", client_id="c7", text="")
        assert (await chat.event())["client_id"] == "c7"


async def test_a_strange_socket_is_closed_with_its_reason(conversation, session, bob):
    foreign = await database_sync_to_async(transcript.create_conversation)(bob)
    missing = "00000000-0000-4000-8000-000000000000"
    strangers = [(conversation, "", 4401), (foreign, session, 4404)]
    strangers += [(missing, session, 4404), (conversation, "forged", 4401)]
    for each, cookie, code in strangers:
        async with Chat(each, cookie) as chat:
            closed = await chat.socket.receive_output(timeout=TIMEOUT)
            assert (closed["type"], closed["code"]) == ("websocket.close", code)
            await chat.command(type="send", client_id="c", text="Let me in")
            assert await chat.socket.receive_nothing()
    assert await rows(conversation) == []


@pytest.mark.parametrize(
    "origin",
    [None, "null", "http://evil.test", "https://testserver", "http://testserver:81"],
)
async def test_sockets_of_foreign_origins_are_refused(conversation, session, origin):
    chat = Chat(conversation, session)
    headers = [h for h in chat.socket.scope["headers"] if h[0] != b"origin"]
    if origin:
        headers.append((b"origin", origin.encode()))
    chat.socket.scope["headers"] = headers
    async with chat:
        assert not chat.accepted


async def test_a_socket_ends_with_its_session(conversation, session, alice):
    async with Chat(conversation, session) as chat:
        await database_sync_to_async(_log_out)(session)
        await chat.command(type="send", client_id="c", text="Still me?")
        closed = await chat.socket.receive_output(timeout=TIMEOUT)
    assert (closed["type"], closed["code"]) == ("websocket.close", 4401)
    assert await rows(conversation) == []


async def test_a_silent_socket_is_closed_when_its_user_is_deactivated(
    quick_watcher, conversation, session, alice
):
    async with Chat(conversation, session) as chat:
        alice.is_active = False
        await alice.asave()
        closed = await chat.socket.receive_output(timeout=TIMEOUT)
    assert closed["code"] == 4401


def _log_out(session):
    client = Client()
    client.cookies["sessionid"] = session
    client.logout()


async def test_a_deleted_conversation_is_not_found(conversation, session):
    async with Chat(conversation, session) as chat:
        await Conversation.objects.filter(pk=conversation.pk).adelete()
        await chat.command(type="send", client_id="c", text="Hello?")
        assert (await chat.event())["code"] == "not_found"


async def test_the_page_gets_fragments(conversation, session, upstream):
    async with Chat(conversation, session, protocol="") as chat:
        first = await chat.socket.receive_from(timeout=TIMEOUT)
        assert 'id="turns"' in first
        await chat.command(type="send", client_id="c", text="Is <b> safe?")
        html = ""
        while "Reply complete" not in html:
            html += await chat.socket.receive_from(timeout=TIMEOUT)
    assert 'data-client-id="c"' in html
    assert "Is &lt;b&gt; safe?" in html
    assert "<b> safe" not in html
