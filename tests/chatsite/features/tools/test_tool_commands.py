"""Decisions of users about calls of tools, over the socket: allow, decline, stop
waiting.
"""

import pytest
from channels.db import database_sync_to_async

from chatsite.features.tools.models import ToolCall
from tests.clients import Person
from tests.fakes import own_tools

from ...scenes import violations
from ...sockets import Chat
from . import calls
from .calls import ask, postpone, reply, wait

pytestmark = pytest.mark.django_db(transaction=True)

MAIL = ("send_mail", {"to": "bob"})


@pytest.fixture
def conversation(alice, settings, upstream):
    settings.TOOLS = own_tools.PATHS
    own_tools.sent.clear()
    return calls.create(alice)


@pytest.fixture
def waiting(conversation):
    """A call that waits for consent, and its turn with it."""
    claim, (call,) = ask(conversation, MAIL)
    (call,) = wait(claim, call)
    return call


@pytest.fixture
def late(conversation):
    """A call whose result comes later, after its turn has ended."""
    claim, (call,) = ask(conversation, ("order", {"what": "tea"}))
    call = postpone(claim, call, seconds=3600.0)
    reply(conversation, claim)
    return call


async def again(call):
    return await database_sync_to_async(ToolCall.objects.get)(pk=call.pk)


async def is_clean():
    return await database_sync_to_async(violations)() == []


def consent(waiting, **values):
    known = {"call": waiting.pk, "digest": waiting.digest}
    return {"type": "consent", "allow": True, **known, **values}


class TestConsent:
    async def test_a_yes_runs_the_call_and_the_turn_goes_on(
        self, conversation, session, waiting, upstream
    ):
        async with Chat(conversation, session) as chat:
            await chat.command(**consent(waiting))
            seen = await chat.until("end", turn=waiting.turn_id)
        states = [event["state"] for event in seen if event["type"] == "tool"]
        assert states == ["asked", "running", "done"]
        assert seen[-1]["state"] == "done"
        assert own_tools.sent == ["bob"]
        assert upstream.calls[-1].messages[-1]["content"] == "Sent to bob."
        assert upstream.violations == []
        assert await is_clean()

    async def test_refusal_is_recorded_with_its_reason_and_the_turn_goes_on(
        self, conversation, session, waiting, upstream
    ):
        async with Chat(conversation, session) as chat:
            await chat.command(**consent(waiting, allow=False, reason="Not today."))
            seen = await chat.until("end", turn=waiting.turn_id)
        states = [event["state"] for event in seen if event["type"] == "tool"]
        assert states == ["cancelled"]
        assert own_tools.sent == []
        assert "Not today." in upstream.calls[-1].messages[-1]["content"]
        assert await is_clean()

    async def test_two_tabs_that_say_yes_run_it_once(
        self, conversation, session, waiting
    ):
        async with Chat(conversation, session) as one, Chat(conversation, session) as b:
            for tab in (one, b, one):
                await tab.command(**consent(waiting))
            for tab in (one, b):
                await tab.until("end", turn=waiting.turn_id)
        assert own_tools.sent == ["bob"]

    @pytest.mark.parametrize(
        ("wrong", "code"),
        [
            ({"digest": "0" * 64}, "changed"),
            ({"digest": None}, "bad_frame"),
            ({"allow": "perhaps"}, "bad_frame"),
            ({"allow": 1}, "bad_frame"),
            ({"call": 10**6}, "not_found"),
            ({"call": -1}, "bad_frame"),
            ({"allow": False, "reason": ["no"]}, "bad_text"),
            ({"allow": False, "reason": "n" * 501}, "too_long"),
        ],
    )
    async def test_invalid_answer_leaves_the_question(
        self, conversation, session, waiting, wrong, code
    ):
        async with Chat(conversation, session) as chat:
            await chat.command(**consent(waiting, **wrong))
            assert (await chat.until("error"))[-1]["code"] == code
            # The socket stays, and tells what waits.
            await chat.command(type="sync")
            [*_, told] = await chat.until("tool")
        assert (told["state"], told["digest"]) == ("waiting", waiting.digest)
        assert (await again(waiting)).allowed is None

    async def test_stop_tells_what_it_has_closed(self, conversation, session, waiting):
        async with Chat(conversation, session) as chat:
            await chat.command(type="stop", turn=waiting.turn_id)
            *_, told, end = await chat.until("end")
        assert (told["call"], told["state"]) == (waiting.pk, "cancelled")
        assert told["result_seq"]
        assert end["state"] == "stopped"

    async def test_the_page_answers_with_its_form(self, conversation, session, waiting):
        """The fields are those of a form as htmx sends them: all of them texts."""
        form = {"call": str(waiting.pk), "allow": "false", "reason": "", "HEADERS": {}}
        async with Chat(conversation, session, protocol="") as chat:
            await chat.html("Run “send_mail”?")
            await chat.command(**consent(waiting, **form))
            card = await chat.html("You did not allow this call")
        assert "tool-cancelled" in card


class TestCancel:
    async def test_a_late_result_is_awaited_no_longer(
        self, conversation, session, late
    ):
        async with (
            Chat(conversation, session) as chat,
            Chat(conversation, session) as b,
        ):
            await b.command(type="sync")
            await b.until("tool", state="late")  # it has joined
            await chat.command(type="cancel_call", call=late.pk)
            for tab in (chat, b):
                [*_, told] = await tab.until("tool", call=late.pk)
                assert told["state"] == "cancelled"
            await chat.command(type="cancel_call", call=late.pk)
            assert (await chat.until("error"))[-1]["code"] == "not_late"
        assert (await again(late)).state == "cancelled"
        assert await is_clean()

    @pytest.mark.parametrize(
        ("call", "code"),
        [(10**6, "not_found"), ("x", "bad_frame"), (None, "bad_frame")],
    )
    async def test_cancel_without_a_call_changes_nothing(
        self, conversation, session, late, call, code
    ):
        async with Chat(conversation, session) as chat:
            await chat.command(type="cancel_call", call=call)
            assert (await chat.until("error"))[-1]["code"] == code
        assert (await again(late)).state == "late"

    async def test_a_call_that_waits_for_consent_is_not_late(
        self, conversation, session, waiting
    ):
        async with Chat(conversation, session) as chat:
            await chat.command(type="cancel_call", call=waiting.pk)
            assert (await chat.until("error"))[-1]["code"] == "not_late"
        assert (await again(waiting)).state == "waiting"


@pytest.mark.server
def test_commands_work_over_the_network(start_site):
    site = start_site(TOOLS=",".join(own_tools.PATHS))
    alice, bob = Person(site, "alice"), Person(site, "bob")
    paths = alice.create(), bob.create()
    alice.post(f"{paths[0]}memory/tools/set/", tools=",".join(own_tools.NAMES))
    with alice.chat(paths[0]) as chat, bob.chat(paths[1]) as other:
        turn = chat.send('Use send_for_parcel {"path": "/nowhere"}')["turn"]
        late = chat.until("tool", state="late")[-1]
        for who in (other, chat):
            who.command(type="cancel_call", call=late["call"])
        assert other.until("error")[-1]["code"] == "not_found"
        told = chat.until("tool", call=late["call"], state="cancelled")[-1]
        assert told["result_seq"] > late["result_seq"]
        chat.command(type="stop", turn=turn)
        chat.until("end", turn=turn)
        chat.send('Use send_mail {"to": "bob"}')
        asked = chat.until("tool", state="waiting")[-1]
        answer = {"type": "consent", "call": asked["call"], "digest": asked["digest"]}
        other.command(**answer, allow=True)
        assert other.until("error")[-1]["code"] == "not_found"
        chat.command(**answer, allow=False)
        assert chat.until("tool", call=asked["call"])[-1]["state"] == "cancelled"
