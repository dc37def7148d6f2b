"""Long results of tools reach the model as summaries, where the site wants that."""

import asyncio
import json

import pytest
from asgiref.sync import async_to_sync
from channels.db import database_sync_to_async

from chatsite.features.tools import late_results
from chatsite.features.tools.tool_loop import loop, summaries
from chatsite.features.tools.tool_loop.result_summary import RESULT_MARK
from memory.engine.tokens import count_text
from memory.models import ModelCall
from memory.view import rebuilding
from tests.fakes import own_tools
from tests.fakes.calling import calling
from tests.patience import wait_for

from ...scenes import violations
from ...sockets import Chat
from . import calls

pytestmark = pytest.mark.django_db(transaction=True)

POUR = ("pour", {"size": 9_000})
MARK = "[summary of 9,000 characters; read_messages from #3 to #3 reads them]"


def saying(text):
    def answer(x):
        x.texts(text)
        x.end()

    return answer


@pytest.fixture
def site(settings, upstream):
    settings.TOOLS = own_tools.PATHS
    settings.TOOL_RESULTS = "summarise"
    return upstream


@pytest.fixture
def conversation(alice, site):
    return calls.create(alice)


async def ask(conversation, session):
    """The message that holds the result."""
    async with Chat(conversation, session) as chat:
        assert (await chat.say("How much is it?"))["state"] == "done"
    return await conversation.messages.aget(seq=3)


def made(conversation):
    rows = conversation.model_calls.filter(purpose=ModelCall.Purpose.RESULT)
    return list(rows.order_by("pk"))


async def test_the_model_gets_a_summary_and_people_the_whole(
    conversation, session, site, alice
):
    site.script(calling(POUR), saying("1,500 lines of ab cd."), "ok")
    row = await ask(conversation, session)
    assert row.text == "ab cd\n" * 1_500
    assert row.sent_text == f"1,500 lines of ab cd.\n{MARK}"
    assert site.calls[2].messages[-1]["content"] == row.sent_text
    assert site.violations == []

    def look():
        (call,) = made(conversation)
        assert call.tokens_output
        replies = conversation.model_calls.filter(purpose="reply")
        assert all(rebuilding.verify_context(reply) for reply in replies)
        # What was written is estimated where the provider does not report it.
        read = [each.tokens_input or each.tokens_estimated for each in replies]
        used = call.tokens_input + call.tokens_output
        assert alice.allowance.tokens_used >= used + sum(read)
        assert violations() == []

    await database_sync_to_async(look)()


async def test_result_is_quoted_in_the_request(conversation, session, site):
    site.script(calling(POUR), saying("Short."), "ok")
    await ask(conversation, session)
    system, document = site.calls[1].messages
    assert system["content"].startswith(RESULT_MARK)
    told = json.loads(document["content"])
    assert told["question"] == "How much is it?"
    assert told["call"] == {"tool": "pour", "arguments": '{"size": 9000}'}
    assert told["result"] == "ab cd\n" * 1_500
    assert "tools" not in site.calls[1].body


async def test_long_result_is_read_from_its_beginning(
    conversation, session, site, settings
):
    call = ("pour", {"size": 600_000})
    site.script(calling(call), saying("Much."), "ok")
    row = await ask(conversation, session)
    told = json.loads(site.calls[1].messages[1]["content"])
    chars = len(told["result"])
    assert count_text(told["result"]) <= 20_000
    assert f"[summary of the first {chars:,} of 600,000 characters;" in row.sent_text


async def test_a_short_result_needs_none(conversation, session, site):
    site.script(calling(("look_up", {"city": "Oslo"})), "ok")
    assert (await ask(conversation, session)).sent_text == ""
    assert await database_sync_to_async(made)(conversation) == []


BAD = {
    "an error": "401",
    "cut off": "length",
    "empty": "empty",
    "too long": saying("word " * 2_000),
    "an error as text": saying('{"error": {"message": "No."}}'),
}


@pytest.mark.parametrize("name", BAD)
async def test_result_is_cut_without_a_summary(conversation, session, site, name):
    site.script(calling(POUR), BAD[name], "ok")
    row = await ask(conversation, session)
    assert row.sent_text.startswith("ab cd\n")
    assert "[shortened: " in row.sent_text
    assert len(await database_sync_to_async(made)(conversation)) == 1


async def test_a_budget_without_room_for_one_asks_for_none(
    conversation, session, site, settings
):
    settings.TOOL_RESULT_TOKENS = 40
    site.script(calling(POUR), "ok")
    row = await ask(conversation, session)
    assert "[shortened: " in row.sent_text
    assert await database_sync_to_async(made)(conversation) == []


async def test_a_fault_of_the_site_costs_the_summary_and_no_result(
    conversation, session, site, monkeypatch, caplog
):
    monkeypatch.setattr(summaries, "summary_request", None)
    site.script(calling(POUR), "ok")
    row = await ask(conversation, session)
    assert "[shortened: " in row.sent_text
    assert f"no summary call={(await conversation.tool_calls.aget()).pk}" in caplog.text


async def test_wait_for_a_summary_has_an_end(conversation, session, site, monkeypatch):
    monkeypatch.setattr(summaries, "MOST_SECONDS", 0.2)
    site.script(calling(POUR), "hang", "ok")
    row = await ask(conversation, session)
    assert "[shortened: " in row.sent_text
    (call,) = await database_sync_to_async(made)(conversation)
    assert call.error == "cancelled"


async def test_a_stop_ends_it_and_keeps_the_result(conversation, session, site):
    site.script(calling(POUR), "hang")
    async with Chat(conversation, session) as chat:
        await chat.command(type="send", client_id="x", text="How much is it?")
        seen = await chat.until("tool", state="running")
        await asyncio.to_thread(wait_for, lambda: len(site.calls) == 2)
        await chat.command(type="stop", turn=seen[-1]["turn"])
        assert (await chat.until("end"))[-1]["state"] == "stopped"
    row = await conversation.messages.aget(seq=3)
    assert "[shortened: " in row.sent_text
    # It was asked for, so it is in the books.
    await asyncio.gather(*loop._left_alone, return_exceptions=True)
    assert len(await database_sync_to_async(made)(conversation)) == 1
    assert await database_sync_to_async(violations)() == []


def test_a_late_result_is_summarised_too(conversation, site):
    claim, (call,) = calls.ask(conversation, ("order", {"what": "tea"}))
    call = calls.postpone(claim, call)
    calls.reply(conversation, claim)
    own_tools.orders[:] = ["ab cd\n" * 1_500]
    site.script(saying("Tea."))
    (due,) = late_results.claim()
    async_to_sync(late_results.look)(due)
    row = conversation.messages.get(late_for=call.request.seq)
    assert (len(row.text), row.sent_text.partition("\n")[0]) == (9_000, "Tea.")
    assert violations() == []
