"""Temporary conversations: listed nowhere, and gone soon after they are closed."""

from datetime import timedelta

import pytest
from django.utils import timezone

from memory import library, transcript
from memory.models import Conversation, Message, ModelCall, Prompt, RecallEntry
from memory.search import conversation_search

from .scenes import say, talk


@pytest.fixture
def fleeting(alice):
    made = transcript.create_conversation(
        alice, temporary=True, system_prompt="Be a quokka."
    )
    talk(made, 1)
    say(made, "My budget is 3,200 euros.")
    return made


def close(conversation, ago):
    """Set the time at which its last page was closed so far back that it is over."""
    rows = Conversation.objects.filter(pk=conversation.pk)
    rows.update(temporary_until=timezone.now() - ago)


def test_temporary_conversation_has_a_neutral_title(alice, fleeting):
    assert fleeting.title == "Temporary conversation"
    assert transcript.suggest_title(fleeting, "My budget") == ""
    assert (
        transcript.create_conversation(alice, temporary=True, title="Ahoy").title
        == "Ahoy"
    )


def test_owner_opens_a_temporary_conversation_by_url_only(alice, bob, fleeting):
    assert transcript.get_for(alice, fleeting.uuid) == fleeting
    with pytest.raises(Conversation.DoesNotExist):
        transcript.get_for(bob, fleeting.uuid)
    for archived in (False, True):
        assert not library.list_conversations(alice, archived=archived)
    assert not library.list_own(alice)
    assert not conversation_search.find_messages(alice, "budget")
    assert not conversation_search.list_searched(alice).exists()


def test_expired_conversation_leaves_nothing(alice, fleeting):
    kept = transcript.create_conversation(alice)
    talk(kept, 1)
    close(fleeting, timedelta(seconds=1))
    assert list(library.find_expired()) == [fleeting]
    assert library.purge_deleted() == 1
    assert list(Conversation.objects.all()) == [kept]
    for model in (Message, ModelCall):
        assert not model.objects.exclude(conversation=kept).exists()
    assert not RecallEntry.objects.exclude(message__conversation=kept).exists()
    assert not Prompt.objects.filter(text__contains="quokka").exists()


def test_open_page_keeps_a_temporary_conversation(alice, fleeting):
    close(fleeting, timedelta(seconds=1))
    kept = transcript.create_conversation(alice)
    library.keep_open([fleeting.pk, kept.pk])
    assert library.purge_deleted() == 0
    fleeting.refresh_from_db()
    left = fleeting.temporary_until - timezone.now()
    assert timedelta(0) < left <= transcript.TEMPORARY
    kept.refresh_from_db()
    assert kept.temporary_until is None


def test_open_page_keeps_it_for_a_day_at_most(fleeting):
    long_ago = timezone.now() - library.TEMPORARY_AGE - timedelta(seconds=5)
    Conversation.objects.update(created_at=long_ago)
    library.keep_open([fleeting.pk])
    assert library.purge_deleted() == 1


def test_deleted_temporary_conversation_cannot_be_restored(alice, fleeting):
    library.delete_conversation(fleeting)
    library.keep_open([fleeting.pk])
    assert not library.deleted_lately(alice)
    with pytest.raises(Conversation.DoesNotExist):
        library.restore_all(alice, [fleeting.uuid])
    assert library.purge_deleted() == 1


def test_normal_conversations_never_expire(alice):
    made = transcript.create_conversation(alice)
    Conversation.objects.update(created_at=timezone.now() - timedelta(days=400))
    assert not library.find_expired()
    assert not made.is_temporary
