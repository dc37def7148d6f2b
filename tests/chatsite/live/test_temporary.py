"""Open pages keep a temporary conversation, and are notified when it is gone."""

import asyncio
from datetime import timedelta

import pytest
from channels.db import database_sync_to_async
from django.utils import timezone

from chatsite.live import watcher
from memory import library, transcript
from memory.models import Conversation

from ..sockets import TIMEOUT, Chat
from .test_watcher import closed

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def fleeting(alice):
    made = transcript.create_conversation(alice, temporary=True)
    soon = timezone.now() + timedelta(seconds=30)
    Conversation.objects.update(temporary_until=soon)
    return made


@database_sync_to_async
def left(conversation):
    conversation.refresh_from_db()
    return conversation.temporary_until - timezone.now()


async def registered():
    """Wait until the watcher looks after the socket."""
    async with asyncio.timeout(TIMEOUT):
        while not watcher.current_watcher()._sockets:  # noqa: ASYNC110 - no event
            await asyncio.sleep(0.01)


async def test_an_open_page_keeps_it(fleeting, session):
    async with Chat(fleeting, session):
        await registered()
        await watcher.current_watcher()._renew()
        assert await left(fleeting) > timedelta(minutes=14)


async def test_the_page_of_another_conversation_does_not(alice, fleeting, session):
    kept = await database_sync_to_async(transcript.create_conversation)(alice)
    async with Chat(kept, session):
        await registered()
        await watcher.current_watcher()._renew()
        assert await left(fleeting) < timedelta(minutes=1)


async def test_a_page_that_is_still_open_is_told_that_it_is_gone(fleeting, session):
    async with Chat(fleeting, session) as chat:
        await registered()
        await database_sync_to_async(library.delete_conversation)(fleeting)
        assert await database_sync_to_async(library.purge_deleted)() == 1
        assert await closed(chat) == watcher.GONE
