"""The progress of a call: shown on the pages, and a sign of life."""

import pytest

from memory import transcript
from memory.models import Conversation
from tests.fakes import own_tools
from tests.fakes.calling import calling

from ...sockets import Chat

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def conversation(alice, settings, upstream):
    settings.CHAT_MODEL = "ok"
    settings.TOOLS = own_tools.PATHS
    made = transcript.create_conversation(alice)
    Conversation.objects.filter(pk=made.pk).update(tools=own_tools.NAMES)
    made.refresh_from_db()
    return made


async def test_progress_is_told_and_is_a_sign_of_life(
    conversation, session, upstream, monkeypatch
):
    monkeypatch.setattr(
        "chatsite.features.tools.context.SiteTool.time_limits",
        property(lambda _: (1.0, 60.0)),
    )
    upstream.script(calling(("count_up", {"steps": 12, "pause": 0.25})), "ok")
    async with Chat(conversation, session) as chat:
        await chat.command(type="send", client_id="c1", text="Count.")
        seen = await chat.until("end")
    told = [each["progress"] for each in seen if each.get("progress")]
    assert told[0] == {"done": 1, "total": 12, "message": "<b>step</b> 1"}
    # Once a second at most, of three.
    assert 2 <= len(told) <= 5
    # It took three times as long as it may without a sign.
    assert [each["state"] for each in seen if each["type"] == "tool"][-1] == "done"


async def test_progress_does_not_extend_the_whole(
    conversation, session, upstream, monkeypatch
):
    monkeypatch.setattr(
        "chatsite.features.tools.context.SiteTool.time_limits",
        property(lambda _: (0.6, 1.0)),
    )
    upstream.script(calling(("count_up", {"steps": 99, "pause": 0.2})), "ok")
    async with Chat(conversation, session) as chat:
        end = await chat.say("Count.")
    assert end["state"] == "done"
    assert "did not answer within 1 s" in upstream.calls[1].messages[-1]["content"]


async def test_progress_reaches_the_page_as_text(conversation, session, upstream):
    upstream.script(calling(("count_up", {"steps": 3, "pause": 0.5})), "ok")
    async with Chat(conversation, session, protocol="") as page:
        await page.command(type="send", client_id="c1", text="Count.")
        html = await page.html("call-progress")
        html += await page.html("</progress>")
        assert "&lt;b&gt;step&lt;/b&gt;" in html
        await page.html("Counted to 3.")
