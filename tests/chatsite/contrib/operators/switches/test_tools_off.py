"""A tool that is switched off: it is not offered, and a call of it does not run."""

import pytest
from channels.db import database_sync_to_async

from chatsite import plugins
from chatsite.features.tools import late_results, registry
from chatsite.features.tools.models import ToolCall
from memory import transcript
from memory.models import Conversation
from tests.fakes import own_tools
from tests.fakes.calling import calling

from ....scenes import memory_url, page_of, signed_in, violations
from ....sockets import Chat

pytestmark = pytest.mark.django_db(transaction=True)
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
    Conversation.objects.filter(pk=made.pk).update(tools=["look_up", "refuse"])
    made.refresh_from_db()
    return made


@pytest.fixture
def switch(switch_off):
    return database_sync_to_async(switch_off)


def offered(call):
    return [each["function"]["name"] for each in call.body.get("tools", [])]


def page_of_owner(conversation):
    return page_of(signed_in(conversation.owner), conversation)


async def test_tool_is_not_offered(conversation, session, site, switch):
    await switch("tool", "look_*")
    async with Chat(conversation, session) as chat:
        assert (await chat.say("How warm is it?"))["state"] == "done"
    assert offered(site.calls[0]) == ["refuse"]


async def test_a_call_does_not_run_and_the_turn_goes_on(
    conversation, session, site, monkeypatch
):
    """The tool is switched off while the model writes its call."""
    site.script(calling(LOOK, text="Let me look."), "ok")
    off = lambda kind, name: name == "look_up" and bool(site.calls)  # noqa: E731
    monkeypatch.setitem(plugins.guards, "use", [off])
    async with Chat(conversation, session) as chat:
        end = await chat.say("How warm is it?")
    assert end["state"] == "done"
    assert [offered(call) for call in site.calls] == [["look_up", "refuse"], ["refuse"]]
    call = await ToolCall.objects.aget()
    assert (call.state, call.error) == ("failed", "tool_off")
    assert "switched off" in site.calls[1].messages[-1]["content"]
    assert not own_tools.begun
    assert site.violations == await database_sync_to_async(violations)() == []
    page = await database_sync_to_async(page_of_owner)(conversation)
    assert "This tool is switched off for now." in page


def test_the_choice_of_tools_says_so(conversation, switch_off):
    switch_off("tool", "look_up")
    client = signed_in(conversation.owner)
    shown = client.get(memory_url("tools", conversation)).text
    assert shown.count("is not available at the moment") == 1
    assert registry.label_of("look_up") == "look_up"
    assert "look_up" not in registry.available()


async def test_a_late_result_is_not_looked_for(conversation, switch, monkeypatch):
    await switch("tool", "order")
    waited = []

    async def note(call, why):
        waited.append(why)

    monkeypatch.setattr(late_results, "_try_later", note)
    call = ToolCall(name="order", state="late", conversation=conversation)
    await late_results.look(call)
    assert waited == ["the tool is gone"]


@pytest.mark.parametrize("name", ["echo_*", "*"])
def test_tools_of_servers_are_named_with_their_server(switch_off, name):
    switch_off("tool", name)
    assert registry.is_tool_off("echo_say")
