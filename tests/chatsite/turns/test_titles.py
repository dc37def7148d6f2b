"""Titles by the model: after the first exchange, and never over a user's."""

import pytest
from channels.db import database_sync_to_async

from chatsite.protocol import events, layer
from chatsite.turns import titles
from memory import library, transcript
from memory.models import Conversation, ModelCall

from ..scenes import talk_in_turns

pytestmark = pytest.mark.django_db(transaction=True)

TEXT = "How do I renew a passport in Zurich? I will fly soon."


@pytest.fixture
def conversation(alice, settings):
    settings.TITLES_ENABLED = True
    made = transcript.create_conversation(alice)
    talk_in_turns(made, TEXT)
    return made


def title_of(conversation):
    return Conversation.objects.get(pk=conversation.pk).title


def calls():
    return list(ModelCall.objects.filter(purpose="title").values("error", "refs"))


async def make(conversation):
    await titles.name_conversation(conversation.pk)
    title = await database_sync_to_async(title_of)(conversation)
    return title, await database_sync_to_async(calls)()


async def test_title_replaces_the_first_words_and_reaches_every_tab(conversation):
    received = []
    await layer.join_group(events.group_of(conversation.pk), received.append)
    title, made = await make(conversation)
    assert title == "How do I renew a passport"
    assert made == [{"error": "", "refs": {"messages": [1, 2]}}]
    assert received == [{"type": "chat.event", "event": events.Title(title)}]


async def test_title_is_requested_once(conversation):
    await make(conversation)
    _, made = await make(conversation)
    assert len(made) == 1


async def test_title_of_a_user_is_kept(conversation):
    await database_sync_to_async(transcript.rename_conversation)(conversation, "Mine")
    assert await make(conversation) == ("Mine", [])


async def test_title_that_a_user_sets_meanwhile_is_kept(conversation, monkeypatch):
    complete = titles.streaming.fetch_reply

    async def rename_meanwhile(*args, **options):
        await database_sync_to_async(transcript.rename_conversation)(
            conversation, "Mine"
        )
        return await complete(*args, **options)

    monkeypatch.setattr(titles.streaming, "fetch_reply", rename_meanwhile)
    title, made = await make(conversation)
    assert (title, len(made)) == ("Mine", 1)


async def test_titles_can_be_switched_off(conversation, settings):
    settings.TITLES_ENABLED = False
    title, made = await make(conversation)
    assert (title, made) == (TEXT, [])


async def test_deleted_conversation_gets_no_title(conversation):
    await database_sync_to_async(library.delete_conversation)(conversation)
    assert (await make(conversation))[1] == []


@pytest.mark.parametrize("mode", ["401", "length", "empty"])
async def test_a_failure_changes_nothing_and_is_tried_once_more(
    conversation, upstream, settings, mode
):
    settings.MODEL_MAX_ATTEMPTS = 1
    upstream.script(mode, mode, mode)
    for tries in (1, 2, 2):
        title, made = await make(conversation)
        assert title == TEXT
        assert len(made) == tries
        assert all(call["error"] for call in made)


async def test_an_older_conversation_keeps_what_it_is_called(conversation):
    talk = database_sync_to_async(talk_in_turns)
    await talk(conversation, *(f"More {n}" for n in range(transcript.TITLE_TURNS)))
    assert (await make(conversation))[1] == []
