"""The list of conversations and the search over all of them."""

import uuid
from datetime import timedelta

import pytest
from django.db import OperationalError
from django.db.models import signals
from django.utils import timezone

from memory import library, transcript
from memory.models import Conversation, Message, Prompt, RecallEntry
from memory.search import conversation_search
from tests.remembered import remembered

from .scenes import talk


@pytest.fixture
@remembered
def conversation(alice):
    made = transcript.create_conversation(alice, title="Kyoto")
    talk(made, 2)
    return made


def say(conversation, text):
    transcript.append_user_message(conversation, text=text, client_id=uuid.uuid4().hex)


def texts_of(found):
    return [each.message.text for each in found]


class TestList:
    def test_list_has_pinned_ones_first_and_archived_ones_apart(self, alice):
        old, pinned, archived = (
            transcript.create_conversation(alice, title=t) for t in "abc"
        )
        library.pin_all([old])
        library.archive_all([archived])
        assert list(library.list_conversations(alice)) == [old, pinned]
        assert list(library.list_conversations(alice, archived=True)) == [archived]
        library.unpin_all([old])
        library.unarchive_all([archived])
        assert list(library.list_conversations(alice)) == [archived, pinned, old]

    @pytest.mark.parametrize(
        ("text", "title"),
        [
            (
                "Mend this:\n```python\nprint(1\n```\nThanks",
                "Mend this: print(1 Thanks",
            ),
            ("~~~\nls -l\n~~~", "ls -l"),
            ("What does ```a``` mean?", "What does ```a``` mean?"),
            ("```", "```"),
        ],
    )
    def test_title_is_made_of_words_and_not_of_fences(self, alice, text, title):
        untitled = transcript.create_conversation(alice)
        assert transcript.suggest_title(untitled, text) == title

    def test_pinning_does_not_count_as_a_change(self, conversation):
        before = Conversation.objects.get().updated_at
        library.pin_all([conversation])
        library.archive_all([conversation])
        assert Conversation.objects.get().updated_at == before


class TestDelete:
    def test_deleted_conversation_is_missing_and_can_be_restored(
        self, alice, conversation
    ):
        library.delete_conversation(conversation)
        with pytest.raises(Conversation.DoesNotExist):
            transcript.get_for(alice, conversation.uuid)
        assert not library.list_conversations(alice).exists()
        assert library.restore_all(alice, [conversation.uuid]) == [conversation]
        assert transcript.get_for(alice, conversation.uuid).messages.count() == 4

    def test_other_user_cannot_restore_a_conversation(self, bob, conversation):
        library.delete_conversation(conversation)
        with pytest.raises(Conversation.DoesNotExist):
            library.restore_all(bob, [conversation.uuid])

    def test_conversation_is_removed_when_the_time_to_undo_is_over(
        self, alice, conversation
    ):
        library.delete_conversation(conversation)
        assert library.purge_deleted() == 0
        late = timezone.now() - library.UNDO - timedelta(seconds=5)
        Conversation.objects.update(deleted_at=late)
        with pytest.raises(Conversation.DoesNotExist):
            library.restore_all(alice, [conversation.uuid])
        assert library.purge_deleted() == 1
        assert not Message.objects.exists()
        assert not RecallEntry.objects.exists()

    def test_prompts_of_a_removed_conversation_are_removed(self, alice):
        own = transcript.create_conversation(alice, system_prompt="You know my secret.")
        other = transcript.create_conversation(alice)
        for made in (own, other):
            talk(made, 1)
        kept = set(Prompt.objects.exclude(text__contains="secret"))
        library.erase_conversation(own)
        assert set(Prompt.objects.all()) == kept

    def test_failed_removal_does_not_stop_the_others(self, alice, monkeypatch):
        stuck, free = (
            transcript.create_conversation(alice),
            transcript.create_conversation(alice),
        )
        Conversation.objects.update(deleted_at=timezone.now() - timedelta(days=1))

        def busy(sender, instance, **kwargs):
            if instance == stuck:
                raise OperationalError

        signals.pre_delete.connect(busy, sender=Conversation)
        try:
            assert library.purge_deleted() == 1
        finally:
            signals.pre_delete.disconnect(busy, sender=Conversation)
        assert list(Conversation.objects.all()) == [stuck]
        assert free not in Conversation.objects.all()
        assert library.purge_deleted() == 1


class TestSeveral:
    @pytest.fixture
    def some(self, alice):
        return [transcript.create_conversation(alice, title=title) for title in "abc"]

    def test_several_are_archived_deleted_and_restored(self, alice, some):
        library.archive_all(some[:2])
        assert list(library.list_conversations(alice)) == some[2:]
        library.unarchive_all(some)
        library.delete_all(some[:2])
        [at] = {row.deleted_at for row in library.deleted_lately(alice)}
        assert at
        uuids = [each.uuid for each in some]
        assert len(library.restore_all(alice, uuids)) == 2
        assert library.list_own(alice).count() == 3
        library.delete_all(some)
        late = timezone.now() - library.UNDO - timedelta(seconds=5)
        Conversation.objects.update(deleted_at=late)
        with pytest.raises(Conversation.DoesNotExist):
            library.restore_all(alice, uuids)

    def test_foreign_conversation_makes_the_whole_choice_missing(
        self, alice, bob, some
    ):
        other = transcript.create_conversation(bob)
        for wrong in ([some[0].uuid, other.uuid], [other.uuid]):
            with pytest.raises(Conversation.DoesNotExist):
                library.pick_conversations(alice, wrong)
        library.delete_all(some)
        with pytest.raises(Conversation.DoesNotExist):
            library.restore_all(bob, [each.uuid for each in some])
        with pytest.raises(Conversation.DoesNotExist):
            library.pick_conversations(alice, [some[0].uuid])


class TestFind:
    def test_search_finds_whole_words_in_any_conversation(self, alice, conversation):
        other = transcript.create_conversation(alice)
        say(conversation, "The budget is 1,200 euros for hotels")
        say(other, "Hiking needs a budget as well")
        found = conversation_search.find_messages(alice, "budget")
        assert {each.message.conversation for each in found} == {conversation, other}
        assert (
            conversation_search.find_messages(alice, "budget hotel")[0].match
            == "budget"
        )

    @pytest.mark.parametrize("query", ["udge", "鸭川", "住", "1,200", "EURO"])
    def test_search_finds_parts_of_words(self, alice, conversation, query):
        text = "The budget is 1,200 euros. 我们想住在鸭川附近"
        say(conversation, text)
        assert texts_of(conversation_search.find_messages(alice, query)) == [text]

    def test_search_shows_the_text_around_the_match(self, alice, conversation):
        say(conversation, "a" * 200 + " the Needle here " + "b" * 200)
        [found] = conversation_search.find_messages(alice, "needle")
        assert found.match == "Needle"
        assert found.before.startswith("…aaa")
        assert found.after.endswith("b…")

    def test_search_never_finds_foreign_or_deleted_messages(
        self, alice, bob, conversation
    ):
        say(conversation, "uniqueword of alice")
        assert conversation_search.find_messages(bob, "uniqueword") == []
        assert conversation_search.find_messages(bob, "niquewor") == []
        library.delete_conversation(conversation)
        assert conversation_search.find_messages(alice, "uniqueword") == []
        assert conversation_search.find_messages(alice, "niquewor") == []

    @pytest.mark.parametrize(
        "query", ["%", "_", "'", '"', "*", "a AND", "(", "\\", "|"]
    )
    def test_signs_have_no_special_meaning(self, alice, conversation, query):
        say(conversation, f"sign {query}{query} here")
        assert len(conversation_search.find_messages(alice, query * 2)) == 1

    def test_search_needs_no_more_queries_among_many_conversations(
        self, alice, django_assert_max_num_queries
    ):
        for conversations in (2, 50):
            plant(alice, conversations)
            with django_assert_max_num_queries(6):
                found = conversation_search.find_messages(alice, "harbour of w1")
                list(conversation_search.list_searched(alice))
            assert found


def plant(user, count):
    for n in range(count):
        say(transcript.create_conversation(user, title=f"w{n}"), f"The harbour of w{n}")
