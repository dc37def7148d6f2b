"""The first run, from its first message to the search at its end."""

import asyncio

import pytest
from channels.db import database_sync_to_async
from django.utils import translation

from chatsite.pages import demo
from chatsite.turns import audit as turn_audit
from chatsite.turns import commands, runner
from memory.integrity import audit

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("en", "I like the 49ers, temples and good coffee."),
        ("zh-hans", "我喜欢 49 人队、寺庙和好咖啡。"),
    ],
)
async def test_demo_ends_with_a_search_in_the_transcript(
    alice, settings, language, words
):
    settings.DEMO_TOKENS_PER_SECOND = 0
    with translation.override(language):
        conversation = await database_sync_to_async(demo.start_demo)(alice)
        lines = await database_sync_to_async(demo.find_lines)(conversation)
    assert len(lines) == len(demo.SCRIPT) - 1
    await answer_all(conversation)
    for line in lines:
        send = database_sync_to_async(commands.submit_message)
        await send(conversation, text=line.text, client_id=line.client_id)
        await answer_all(conversation)
    assert await database_sync_to_async(demo.find_lines)(conversation) == []
    await database_sync_to_async(check)(conversation, words)


async def answer_all(conversation):
    runner.start_turns(conversation.pk)
    while tasks := list(runner._tasks):
        await asyncio.wait(tasks)


def check(conversation, words):
    turns = conversation.turns.order_by("pk")
    assert {turn.state for turn in turns} == {"done"}
    [call] = conversation.tool_calls.all()
    assert (call.name, call.state) == ("search_transcript", "done")
    assert call.turn == turns.last()
    assert words in call.result.text
    assert words in turns.last().reply.text
    numbers = conversation.messages.order_by("seq").values_list("seq", flat=True)
    assert [*numbers] == [*range(1, 2 * len(demo.SCRIPT) + 3)]
    # The first figure that a user sees is a gain.
    first = conversation.summaries.order_by("version").first()
    assert first.tokens_after < first.tokens_before
    # Nor is there markup in what is made of a result.
    assert not any("<" in row.text for row in conversation.summaries.all())
    assert [
        str(each) for each in (*turn_audit.check_turns(), *audit.check_memory())
    ] == []
