"""The first run: its messages, its summaries, and a question with and without them."""

import asyncio

import pytest
from channels.db import database_sync_to_async
from django.utils import translation

from chatsite.llm.demo.answers import answer_messages
from chatsite.pages import demo
from chatsite.turns import audit as turn_audit
from chatsite.turns import commands, requests, runner, variations
from memory import actions, versions
from memory.integrity import audit

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("en", ("Kyoto", "Nara", "I don't know")),
        ("zh-hans", ("京都", "奈良", "我不知道")),
    ],
)
async def test_demo_model_knows_the_edited_place_only_from_the_summary(
    alice, settings, language, words
):
    settings.DEMO_TOKENS_PER_SECOND = 0
    with translation.override(language):
        conversation = await database_sync_to_async(demo.start_demo)(alice)
        lines = await database_sync_to_async(demo.find_lines)(conversation)
        question = translation.gettext(demo.QUESTION)
    assert len(lines) == len(demo.SCRIPT) - 1
    await answer_all(conversation)
    for line in lines:
        send = database_sync_to_async(commands.submit_message)
        await send(conversation, text=line.text, client_id=line.client_id)
        await answer_all(conversation)
    assert await database_sync_to_async(demo.find_lines)(conversation) == []
    await database_sync_to_async(check)(conversation)
    await database_sync_to_async(ask)(conversation, question, *words)


async def answer_all(conversation):
    runner.start_turns(conversation.pk)
    while tasks := list(runner._tasks):
        await asyncio.wait(tasks)


def check(conversation):
    turns = conversation.turns.order_by("pk")
    assert {turn.state for turn in turns} == {"done"}
    assert not any("demo model" in turn.reply.text for turn in turns[1:])
    numbers = conversation.messages.order_by("seq").values_list("seq", flat=True)
    assert [*numbers] == [*range(1, 2 * len(demo.SCRIPT) + 1)]
    # The first figure that a user sees is a gain.
    first = conversation.summaries.order_by("version").first()
    assert first.tokens_after < first.tokens_before
    assert [
        str(each) for each in (*turn_audit.check_turns(), *audit.check_memory())
    ] == []


def ask(conversation, question, place, other, unknown):
    """Ask where the trip goes: with another place in the summary, and without it."""
    first = versions.active_summaries(conversation)[0]
    text = first.text.replace(place, other)
    assert text != first.text
    actions.rewrite_summary(
        conversation, first.version, text, author=conversation.owner
    )
    assert other in answer(conversation, question)
    variations.switch_off(conversation, ("summaries",))
    assert answer(conversation, question).startswith(unknown)


def answer(conversation, question):
    conversation.refresh_from_db()
    built = requests.next_turn(conversation, draft=question)
    assert not built.tools
    return answer_messages(built.messages)
