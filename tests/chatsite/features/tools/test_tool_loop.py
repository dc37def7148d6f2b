"""Turns that call tools, from Enter to the reply, with a provider that reads requests
as strictly as OpenAI does.
"""

import json

import pytest
from channels.db import database_sync_to_async
from django.urls import reverse

from chatsite.features.tools import late_results
from chatsite.features.tools.models import ToolCall
from chatsite.features.tools.tool_loop import answers, loop
from chatsite.turns import attempt, runner
from chatsite.turns import audit as turn_audit
from chatsite.turns.models import Preferences, Turn
from memory import transcript
from memory.engine.compose import digest_wire
from memory.integrity import audit
from memory.models import Conversation, ModelCall
from memory.view import rebuilding
from tests.fakes import own_tools
from tests.fakes.calling import calling

from ...scenes import HTMX, memory_url, page_of, signed_in, url, violations
from ...sockets import Chat

pytestmark = pytest.mark.django_db(transaction=True)

State = ToolCall.State
LOOK = ("look_up", {"city": "Oslo"})


@pytest.fixture
def site(settings, upstream):
    settings.CHAT_MODEL = "ok"
    settings.TOOLS = own_tools.PATHS
    own_tools.begun.clear()
    return upstream


@pytest.fixture
def conversation(alice, site):
    made = transcript.create_conversation(alice)
    Conversation.objects.filter(pk=made.pk).update(tools=own_tools.NAMES)
    made.refresh_from_db()
    return made


def rows(conversation):
    """Return the rows of the transcript: role, text, and the names of the calls."""
    return [
        (row.role, row.text, *(call["name"] for call in row.tool_calls))
        for row in conversation.messages.order_by("seq")
    ]


def states(conversation):
    calls = ToolCall.objects.filter(conversation=conversation).order_by("pk")
    return [(call.name, call.state, call.error) for call in calls]


def check(conversation, site):
    """Everything is as the promises say, and each request is what was sent."""
    assert site.violations == []
    assert [
        str(each) for each in (*turn_audit.check_turns(), *audit.check_memory())
    ] == []
    calls = ModelCall.objects.filter(conversation=conversation, purpose="reply")
    assert all(rebuilding.verify_context(call) for call in calls)
    assert all(call.message_id for call in calls)


def reading(function):
    return database_sync_to_async(function)


async def test_a_reply_after_a_call(conversation, session, site):
    site.script(calling(LOOK, text="Let me look."), "ok")
    async with Chat(conversation, session) as chat:
        end = await chat.say("How warm is it?")
    assert end["state"] == "done"

    def look():
        assert rows(conversation) == [
            ("user", "How warm is it?"),
            ("assistant", "Let me look.", "look_up"),
            ("tool", "Oslo: 21 degrees"),
            ("assistant", end["text"]),
        ]
        assert states(conversation) == [("look_up", State.DONE, "")]
        assert Turn.objects.get().reply.seq == end["seq"] == 4
        check(conversation, site)
        for call in conversation.model_calls.filter(purpose="reply"):
            assert call.refs["tools"] == own_tools.NAMES
            assert call.refs["tools_sha256"] == digest_wire(site.calls[0].body["tools"])
        transcript.change_tools(conversation, [])
        page = signed_in(conversation.owner).get(
            url("context", conversation), {"reply": 4}
        )
        assert "The model may call: look_up, " in page.content.decode()

    await reading(look)()
    first, second = site.calls
    assert {each["function"]["name"] for each in first.body["tools"]} == {
        *own_tools.NAMES
    }
    assert second.messages[-1]["content"] == "Oslo: 21 degrees"


async def test_a_server_without_tools_is_asked_without_them(
    conversation, session, site, settings
):
    settings.CHAT_MODEL = "strict:tools"
    async with Chat(conversation, session) as chat:
        first = await chat.say("How warm is it?")
        second = await chat.say("And in Rome?")
    assert [first["text"], second["text"]] == [
        "Reply to: How warm is it?",
        "Reply to: And in Rome?",
    ]
    # The server was asked once whether it takes them.
    assert ["tools" in each.body for each in site.calls] == [True, False, False]

    def look():
        calls = conversation.model_calls.filter(purpose="reply").order_by("pk")
        assert [call.refs.get("tools") for call in calls] == [
            own_tools.NAMES,
            None,
            None,
        ]
        refused = [call.refs.get("tools_refused") for call in calls]
        assert refused == [None, own_tools.NAMES, own_tools.NAMES]
        assert all(rebuilding.verify_context(call) for call in calls)
        assert [
            str(each) for each in (*turn_audit.check_turns(), *audit.check_memory())
        ] == []
        client, said = signed_in(conversation.owner), "takes no tools"
        for values in ({}, {"reply": first["seq"]}):
            pane = client.get(url("context", conversation), values).content.decode()
            assert said in pane
            assert "It can't call: look_up, " in pane
            assert "The model may call" not in pane
        dialog = client.get(reverse("memory-tools", args=[conversation.uuid]))
        assert said in dialog.content.decode()

    await reading(look)()


@pytest.mark.parametrize("address", ["127.0.0.1:9/v1", "http://[::1/v1"])
async def test_an_address_without_a_scheme_is_said(
    conversation, session, site, settings, address
):
    settings.OPENAI_BASE_URL = address
    async with Chat(conversation, session) as chat:
        end = await chat.say("How warm is it?")
    assert end["state"] == "failed"
    assert (await reading(Turn.objects.get)()).error == "address"

    def look():
        page = page_of(signed_in(conversation.owner), conversation)
        assert "The address of the model provider is incomplete." in page

    await reading(look)()


async def test_tools_know_the_time_zone_of_the_person(
    conversation, session, site, alice
):
    def choose():
        Preferences.objects.create(user=alice, time_zone="Asia/Tokyo")
        transcript.change_tools(conversation, ["current_time"])

    await reading(choose)()
    site.script(calling(("current_time", {})), "ok")
    async with Chat(conversation, session) as chat:
        await chat.say("What time is it?")
    assert site.calls[1].messages[-1]["content"].endswith("UTC+09:00 (Asia/Tokyo)")


async def test_calls_at_once_are_answered_in_their_order(conversation, session, site):
    calls = [("look_up", {"city": city}) for city in ("Oslo", "Rome", "Lima")]
    site.script(calling(*calls, split=3), "ok")
    async with Chat(conversation, session) as chat:
        await chat.say("How warm is it?")
    results = [each["content"] for each in site.calls[1].messages[-3:]]
    assert results == [f"{city}: 21 degrees" for city in ("Oslo", "Rome", "Lima")]
    await reading(check)(conversation, site)


BAD = {
    "unknown": (("fly", {}), State.FAILED, "unknown_tool", "no tool named 'fly'"),
    "no json": (("look_up", '{"city": '), State.FAILED, "bad_arguments", "no JSON"),
    "a list": (("look_up", "[1]"), State.FAILED, "bad_arguments", "no JSON"),
    "misfit": (("look_up", {"town": 1}), State.FAILED, "bad_arguments", "city"),
    "raises": (("break_down", {}), State.FAILED, "tool_error", "(KeyError)"),
    "refuses": (("refuse", {}), State.FAILED, "tool_error", "no such city"),
    "hangs": (("hang", {}), State.UNKNOWN, "tool_timeout", "within 0.2 s"),
    "odd name": (("functions.x y", {}), State.FAILED, "unknown_tool", "functions_x_y"),
    "nul": (
        ("look_up", '{"city": "a\\u0000\\ud800b"}'),
        State.DONE,
        "",
        "a\ufffdb: 21",
    ),
}


@pytest.mark.parametrize("name", BAD)
async def test_a_bad_call_is_answered_and_the_reply_ends(
    conversation, session, site, settings, name
):
    settings.TOOL_SECONDS = 0.2
    call, state, error, words = BAD[name]
    site.script(calling(call, LOOK), "ok")
    async with Chat(conversation, session) as chat:
        end = await chat.say("Do it.")
    assert end["state"] == "done"
    result = site.calls[1].messages[-2]["content"]
    assert words in result
    assert "sk-secret" not in result

    def look():
        assert states(conversation)[0][1:] == (state, error)
        assert states(conversation)[1] == ("look_up", State.DONE, "")
        check(conversation, site)

    await reading(look)()


async def test_a_first_word_takes_few_steps_of_the_database(
    conversation, session, site, monkeypatch
):
    """Another user's work can run before each step, so the first word waits for it."""
    taken = []
    for module in (runner, attempt, loop):

        def note(step, *args, retry=module.retry, **options):
            taken.append(step.__name__)
            return retry(step, *args, **options)

        monkeypatch.setattr(module, "retry", note)
    async with Chat(conversation, session) as chat:
        await chat.say("What the first one loads, all others have")
        taken.clear()
        monkeypatch.setattr(runner, "_load_tool_loop", None)
        assert (await chat.say("Hello"))["state"] == "done"
    assert taken == ["begin_attempt", "_prepare_next", "_finish_turn"]


async def test_a_call_of_a_reply_that_was_cut_off_is_not_run(
    conversation, session, site
):
    note = ("write_down", {"text": "Buy milk and bread"})
    ends = []
    for finish in ("length", None, "stop"):
        site.script(calling(note, text="I write.", finish=finish))
        async with Chat(conversation, session) as chat:
            ends.append((await chat.say(f"Write it down: {finish}"))["state"])
    assert ends == ["truncated", "failed", "done"]
    assert len(own_tools.begun) == 1

    def look():
        cut, broken, ran = ToolCall.objects.order_by("pk")
        assert [cut.arguments, broken.arguments] == [note[1], {"text": "Buy m"}]
        assert {(call.state, call.error) for call in (cut, broken)} == {
            (State.CANCELLED, "not_run")
        }
        assert ran.state == State.DONE
        assert rows(conversation)[1:3] == [
            ("assistant", "I write.", "write_down"),
            ("tool", answers.CUT_OFF),
        ]
        page = page_of(signed_in(conversation.owner), conversation)
        assert page.count("It did not run.") == 2
        check(conversation, site)

    await reading(look)()
    # Both are in the requests that followed, each with its answer.
    sent = [each.get("content") for each in site.calls[-1].messages]
    assert sent.count(answers.CUT_OFF) == 2


async def test_a_call_of_a_reply_that_was_stopped_is_not_run(
    conversation, session, site
):
    def begin_to_call(x):
        function = {"name": "write_down", "arguments": '{"text": "Buy'}
        call = {"index": 0, "id": "one", "type": "function", "function": function}
        x.chunk({"role": "assistant", "tool_calls": [call]})
        x.text("I write.")
        x.wait(3600)

    site.script(begin_to_call)
    async with Chat(conversation, session) as chat:
        await chat.command(type="send", client_id="x", text="Write it down.")
        turn = (await chat.until("frame"))[-1]["turn"]
        await chat.command(type="stop", turn=turn)
        seen = await chat.until("end", turn=turn)
    assert seen[-1]["state"] == "stopped"
    assert [each["state"] for each in seen if each["type"] == "tool"] == ["cancelled"]
    assert await reading(states)(conversation) == [
        ("write_down", State.CANCELLED, "not_run")
    ]
    await reading(check)(conversation, site)


async def test_a_large_result_is_whole_for_people_and_short_for_the_model(
    conversation, session, site
):
    site.script(calling(("pour", {"size": 5_000_000})), "ok")
    async with Chat(conversation, session) as chat:
        await chat.say("Pour it.")
    sent = site.calls[1].messages[-1]["content"]
    assert len(sent) < 10_000
    assert "read_messages from #3" in sent

    def look():
        row = conversation.messages.get(seq=3)
        assert len(row.text) == 4_999_998
        assert row.tokens < 2_000
        check(conversation, site)

    await reading(look)()


async def test_a_turn_at_its_limits_answers_without_tools(
    conversation, session, site, settings
):
    settings.TOOL_ROUNDS, settings.TOOL_CALLS = 9, 4
    site.script(*[calling(LOOK, LOOK, LOOK)] * 2, "ok")
    async with Chat(conversation, session) as chat:
        end = await chat.say("On and on.")
    assert end["state"] == "done"
    assert site.calls[-1].body["tool_choice"] == "none"

    def look():
        found = [state for _, state, _ in states(conversation)]
        assert found == [State.DONE] * 4 + [State.FAILED] * 2
        last = conversation.model_calls.filter(purpose="reply").latest("pk")
        assert last.refs["tool_choice"] == "none"
        check(conversation, site)

    await reading(look)()


async def test_a_model_that_never_stops_calling_is_stopped(
    conversation, session, site, settings
):
    settings.TOOL_ROUNDS = 3
    site.script(*[calling(LOOK)] * 9)
    async with Chat(conversation, session) as chat:
        end = await chat.say("On and on.")
    assert end["state"] == "failed"
    assert len(site.calls) == 4
    assert (await reading(Turn.objects.get)()).error == "tool_limit"


@pytest.mark.parametrize("rounds", [0, 1, 2, 60])
async def test_replies_may_call_tools_as_often_as_the_setting_says(
    conversation, session, site, settings, rounds
):
    settings.TOOL_ROUNDS = rounds
    site.script(*[calling(LOOK)] * rounds, "ok")
    async with Chat(conversation, session) as chat:
        end = await chat.say("On and on.")
    assert end["state"] == "done"
    assert len(site.calls) == rounds + 1
    choices = [each.body.get("tool_choice") for each in site.calls]
    assert choices == [None] * rounds + ["none"]
    done = [("look_up", State.DONE, "")] * rounds
    assert await reading(states)(conversation) == done


async def test_fifty_calls_in_one_reply(conversation, session, site):
    site.script(calling(*[LOOK] * 50), "ok")
    async with Chat(conversation, session) as chat:
        await chat.say("Fifty, please.")
    assert len(site.calls[1].messages) == 2 + 1 + 50
    assert await reading(states)(conversation) == [("look_up", State.DONE, "")] * 50
    await reading(check)(conversation, site)


@pytest.mark.parametrize("room", [answers.TOOL_ROOM, 4])
async def test_a_message_sent_meanwhile_stands_behind_the_turn(
    conversation, session, site, monkeypatch, room
):
    monkeypatch.setattr(answers, "TOOL_ROOM", room)
    site.script(calling(LOOK), calling(LOOK), "ok", "ok")
    async with Chat(conversation, session) as chat:
        with site.unfinished():
            await chat.command(type="send", client_id="one", text="First")
            await chat.until("frame")
            await chat.command(type="send", client_id="two", text="Second")
            second = (await chat.until("ack"))[-1]
        await chat.until("end", turn=second["turn"])

    def look():
        roles = [row.role for row in conversation.messages.order_by("seq")]
        assert roles == ["user", *["assistant", "tool"] * 2, "assistant", "user"] + [
            "assistant"
        ]
        # Where no more calls have numbers, the turn has to end.
        assert ("tool_choice" in site.calls[2].body) is (room == 4)
        check(conversation, site)

    await reading(look)()


async def test_stop_while_a_tool_runs(conversation, session, site):
    site.script(calling(("hang", {}), LOOK, text="One moment."), "ok")
    async with Chat(conversation, session) as chat:
        await chat.command(type="send", client_id="x", text="Hang")
        seen = await chat.until("tool", name="hang", state="running")
        await chat.command(type="stop", turn=seen[-1]["turn"])
        end = (await chat.until("end"))[-1]
        assert end["state"] == "stopped"
        again = await chat.say("And now?")
    assert again["state"] == "done"

    def look():
        assert states(conversation)[0] == ("hang", State.UNKNOWN, "")
        check(conversation, site)

    await reading(look)()


async def test_regeneration_supersedes_all_that_the_turn_stored(
    conversation, session, site
):
    site.script(calling(LOOK), "ok", calling(LOOK), "ok")
    async with Chat(conversation, session) as chat:
        end = await chat.say("How warm is it?")
        await chat.command(type="regenerate", turn=end["turn"])
        await chat.until("end", turn=end["turn"])
    third = site.calls[2]
    assert [each["role"] for each in third.messages] == ["system", "user"]

    def look():
        old = conversation.messages.exclude(superseded_at=None)
        assert list(old.values_list("seq", flat=True)) == [2, 3, 4]
        check(conversation, site)

    await reading(look)()


async def test_an_overflow_in_the_middle_of_a_turn(conversation, session, site):
    site.script(calling(("pour", {"size": 9000})), "400-context", "ok")
    async with Chat(conversation, session) as chat:
        end = await chat.say("Pour it.")
    assert end["state"] == "done"
    assert len(json.dumps(site.calls[2].body)) < len(json.dumps(site.calls[1].body))
    assert site.violations == []


@pytest.mark.parametrize("act", ["delete", "leave-out"])
async def test_calls_removed_during_a_run_are_sent_to_no_model(
    conversation, session, site, tmp_path, act
):
    meeting = ("meet", {"folder": str(tmp_path), "name": "zqresult"})
    site.script(calling(meeting, text="Let me see."), "ok")

    def remove(seq):
        target = memory_url("message", conversation, seq=seq, name=act)
        browser = signed_in(conversation.owner)
        assert browser.post(target, headers=HTMX).status_code == 200
        for name in ("b", "c"):
            (tmp_path / name).touch()  # the two others, so that the tool answers

    async with Chat(conversation, session) as chat:
        await chat.command(type="send", client_id="a", text="Meet them.")
        asked = (await chat.until("tool", state="running"))[-1]
        await reading(remove)(asked["seq"])
        assert (await chat.until("end"))[-1]["state"] == "stopped"
        assert (await chat.say("And now?"))["state"] == "done"
    assert len(site.calls) == 2
    assert "zqresult" not in json.dumps(site.calls[1].body)

    def look():
        assert states(conversation) == [("meet", State.UNKNOWN, "")]
        assert Turn.objects.earliest("pk").error == "step_removed"
        assert "zqresult" not in str(conversation.messages.filter(role="tool").values())
        assert violations() == []

    await reading(look)()


async def test_a_deleted_reminder_never_comes(conversation, session, site):
    word = "zqreminder"
    remind = ("remind_me", {"text": word, "in_minutes": 60})
    site.script(calling(remind, text="I will."), "ok", "ok")

    def forget():
        browser = signed_in(conversation.owner)
        for row in conversation.messages.order_by("seq"):
            target = memory_url("message", conversation, seq=row.seq, name="delete")
            assert browser.post(target, headers=HTMX).status_code == 200
        call = ToolCall.objects.get()
        assert (call.state, call.error) == (State.CANCELLED, "call_deleted")
        assert word not in str(vars(call))
        assert not late_results.claim()
        assert late_results.deliver(call.pk, word) is None

    await reading(transcript.change_tools)(conversation, ["remind_me"])
    async with Chat(conversation, session) as chat:
        await chat.say(f"Remind me of {word}.")
        await reading(forget)()
        before = len(site.requests)
        await chat.say("What was it?")
    assert word not in json.dumps([each.body for each in site.requests[before:]])
    assert await reading(violations)() == []
