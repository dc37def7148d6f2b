"""Labels: named once per person, given to conversations, counted with the list."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memory import library, transcript
from memory.labels import store as labels
from memory.models import Conversation, Label
from memory.search import conversation_search

from .scenes import talk


@pytest.fixture
def some(alice):
    return [transcript.create(alice, title=title) for title in "abc"]


def names_of(user):
    return [label.name for label in labels.of(user)]


class TestNames:
    def test_a_name_is_a_label_once_whatever_its_capitals(self, alice):
        first = labels.find_or_make(alice, "Äpfel")
        assert labels.find_or_make(alice, " äPFEL ") == first
        assert labels.find_or_make(alice, "A\u0308pfel") == first
        assert names_of(alice) == ["Äpfel"]

    def test_everybody_has_names_of_their_own(self, alice, bob):
        mine = labels.find_or_make(alice, "Work")
        assert labels.find_or_make(bob, "Work") != mine
        assert names_of(alice) == names_of(bob) == ["Work"]

    def test_they_stand_in_their_order(self, alice):
        for name in ("work", "Bakery", "电影", "apples"):
            labels.find_or_make(alice, name)
        assert names_of(alice) == ["apples", "Bakery", "work", "电影"]

    @pytest.mark.parametrize("name", ["", " \n", "\u200b", "x" * 41, "\u0958" * 21])
    def test_what_is_no_name_is_refused(self, alice, name):
        with pytest.raises(labels.LabelError):
            labels.find_or_make(alice, name)
        assert names_of(alice) == []

    def test_the_longest_name_fits(self, alice):
        assert labels.find_or_make(alice, "ΐ" * 40).name == "ΐ" * 40

    def test_there_is_a_most(self, alice, monkeypatch):
        monkeypatch.setattr(labels, "MOST", 2)
        made = labels.named(alice, ["one", "two", "three", "ONE"])
        assert [label.name for label in made] == ["one", "two"]
        with pytest.raises(labels.LabelError, match="2 labels"):
            labels.find_or_make(alice, "three")
        assert labels.find_or_make(alice, "Two") == made[1]

    def test_a_label_is_renamed_but_not_to_another(self, alice):
        work, home = labels.named(alice, ["Work", "Home"])
        labels.rename(work, "WORK")
        with pytest.raises(labels.LabelError, match="already"):
            labels.rename(home, "work")
        assert names_of(alice) == ["Home", "WORK"]


class TestGiving:
    def test_one_conversation_has_several_and_no_one_twice(self, alice, some):
        both = labels.named(alice, ["Work", "Home"])
        labels.give(both, some[:1])
        labels.give(both[:1], some[:2])
        assert {label.name for label in some[0].labels.all()} == {"Work", "Home"}
        assert both[0].conversations.count() == 2
        labels.take(both[:1], some)
        assert some[0].labels.get() == both[1]

    def test_it_is_no_use_of_the_conversation(self, alice, some):
        before = list(Conversation.objects.values_list("updated_at"))
        labels.give(labels.named(alice, ["Work"]), some)
        assert list(Conversation.objects.values_list("updated_at")) == before

    def test_a_label_goes_and_the_conversations_stay(self, alice, some):
        [work] = labels.named(alice, ["Work"])
        labels.give([work], some)
        work.delete()
        assert library.own(alice).count() == 3

    def test_a_conversation_goes_and_the_label_stays(self, alice, some):
        [work] = labels.named(alice, ["Work"])
        labels.give([work], some)
        library.erase_conversation(some[0])
        assert work.conversations.count() == 2

    def test_a_hundred_at_once_take_as_many_statements_as_one(self, alice):
        many = [transcript.create(alice) for _ in range(library.MOST_AT_ONCE)]
        work, home = labels.named(alice, ["Work", "Home"])

        def count(rows, label):
            with CaptureQueriesContext(connection) as queries:
                labels.give([label], rows)
                labels.take([label], rows)
            return len(queries)

        assert count(many, work) == count(many[:1], home)


class TestListing:
    def test_the_list_and_the_search_show_one_label(self, alice, some):
        talk(some[0], 1)
        talk(some[1], 1)
        [work] = labels.named(alice, ["Work"])
        labels.give([work], [some[0], some[2]])
        library.archive_conversation(some[2])

        def listed(**which):
            return {each.title for each in library.list_conversations(alice, **which)}

        assert listed(label=work.pk) == {"a"}
        assert listed(label=work.pk, archived=True) == {"c"}
        assert listed() == {"a", "b"}
        titles = conversation_search.find_titles(alice, "a", label=work.pk)
        assert [each.title for each in titles] == ["a"]
        hits = conversation_search.find_messages(alice, "text", label=work.pk)
        assert {hit.message.conversation_id for hit in hits} == {some[0].pk}

    def test_labels_and_a_count_come_in_one_statement(self, alice, bob, some):
        labels.named(bob, ["Other"])
        labels.give(labels.named(alice, ["b", "A"]), some)
        library.archive_conversation(some[0])
        with CaptureQueriesContext(connection) as queries:
            found, count = labels.split(
                labels.with_count(
                    alice, library.list_conversations(alice, archived=True)
                )
            )
        assert ([label.name for label in found], count) == (["A", "b"], 1)
        assert len(queries) == 1
        assert found == list(Label.objects.filter(owner=alice))
        nothing = labels.split(
            labels.with_count(bob, library.list_conversations(bob, archived=True))
        )
        assert nothing[1] == 0


class TestSeveral:
    def test_they_are_archived_deleted_and_restored(self, alice, some):
        library.archive_all(some[:2])
        assert list(library.list_conversations(alice)) == some[2:]
        library.unarchive_all(some)
        library.delete_all(some[:2])
        [at] = {row.deleted_at for row in library.deleted_lately(alice)}
        assert at
        uuids = [each.uuid for each in some]
        assert library.restore_all(alice, uuids) == 2
        assert library.own(alice).count() == 3
        library.delete_all(some)
        late = timezone.now() - library.UNDO - timedelta(seconds=5)
        Conversation.objects.update(deleted_at=late)
        with pytest.raises(Conversation.DoesNotExist):
            library.restore_all(alice, uuids)

    def test_one_that_is_not_theirs_is_missing_with_all(self, alice, bob, some):
        other = transcript.create(bob)
        for wrong in ([some[0].uuid, other.uuid], [other.uuid]):
            with pytest.raises(Conversation.DoesNotExist):
                library.pick(alice, wrong)
        library.delete_all(some)
        with pytest.raises(Conversation.DoesNotExist):
            library.restore_all(bob, [each.uuid for each in some])
        with pytest.raises(Conversation.DoesNotExist):
            library.pick(alice, [some[0].uuid])
