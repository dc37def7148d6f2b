"""Labels: named once per user, and given to conversations."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chatsite.features.labels import services
from chatsite.features.labels.listing import narrow_to_label
from chatsite.features.labels.services import (
    LabelError,
    find_or_make_label,
    find_or_make_labels,
    give_labels,
    list_labels,
    rename_label,
    take_labels,
)
from memory import library, transcript
from memory.models import Conversation
from memory.search import conversation_search
from tests.memory.scenes import talk


@pytest.fixture
def some(alice):
    return [transcript.create_conversation(alice, title=title) for title in "abc"]


def names_of(user):
    return [label.name for label in list_labels(user)]


class TestNames:
    def test_a_name_is_a_label_once_whatever_its_capitals(self, alice):
        first = find_or_make_label(alice, "Äpfel")
        assert find_or_make_label(alice, " äPFEL ") == first
        assert find_or_make_label(alice, "A\u0308pfel") == first
        assert names_of(alice) == ["Äpfel"]

    def test_everybody_has_names_of_their_own(self, alice, bob):
        mine = find_or_make_label(alice, "Work")
        assert find_or_make_label(bob, "Work") != mine
        assert names_of(alice) == names_of(bob) == ["Work"]

    def test_labels_are_in_order(self, alice):
        for name in ("work", "Bakery", "电影", "apples"):
            find_or_make_label(alice, name)
        assert names_of(alice) == ["apples", "Bakery", "work", "电影"]

    @pytest.mark.parametrize("name", ["", " \n", "\u200b", "x" * 41, "\u0958" * 21])
    def test_invalid_names_are_refused(self, alice, name):
        with pytest.raises(LabelError):
            find_or_make_label(alice, name)
        assert names_of(alice) == []

    def test_the_longest_name_fits(self, alice):
        assert find_or_make_label(alice, "ΐ" * 40).name == "ΐ" * 40

    def test_labels_of_a_user_have_a_limit(self, alice, monkeypatch):
        monkeypatch.setattr(services, "MOST", 2)
        made = find_or_make_labels(alice, ["one", "two", "three", "ONE"])
        assert [label.name for label in made] == ["one", "two"]
        with pytest.raises(LabelError, match="2 labels"):
            find_or_make_label(alice, "three")
        assert find_or_make_label(alice, "Two") == made[1]

    def test_a_label_is_renamed_but_not_to_another(self, alice):
        work, home = find_or_make_labels(alice, ["Work", "Home"])
        rename_label(work, "WORK")
        with pytest.raises(LabelError, match="already"):
            rename_label(home, "work")
        assert names_of(alice) == ["Home", "WORK"]


class TestGiving:
    def test_conversation_has_several_labels_and_each_once(self, alice, some):
        both = find_or_make_labels(alice, ["Work", "Home"])
        give_labels(both, some[:1])
        give_labels(both[:1], some[:2])
        assert {label.name for label in some[0].labels.all()} == {"Work", "Home"}
        assert both[0].conversations.count() == 2
        take_labels(both[:1], some)
        assert some[0].labels.get() == both[1]

    def test_label_does_not_count_as_use_of_the_conversation(self, alice, some):
        before = list(Conversation.objects.values_list("updated_at"))
        give_labels(find_or_make_labels(alice, ["Work"]), some)
        assert list(Conversation.objects.values_list("updated_at")) == before

    def test_a_label_goes_and_the_conversations_stay(self, alice, some):
        [work] = find_or_make_labels(alice, ["Work"])
        give_labels([work], some)
        work.delete()
        assert library.list_own(alice).count() == 3

    def test_a_conversation_goes_and_the_label_stays(self, alice, some):
        [work] = find_or_make_labels(alice, ["Work"])
        give_labels([work], some)
        library.erase_conversation(some[0])
        assert work.conversations.count() == 2

    def test_a_hundred_at_once_take_as_many_statements_as_one(self, alice):
        many = [
            transcript.create_conversation(alice) for _ in range(library.MOST_AT_ONCE)
        ]
        work, home = find_or_make_labels(alice, ["Work", "Home"])

        def count(rows, label):
            with CaptureQueriesContext(connection) as queries:
                give_labels([label], rows)
                take_labels([label], rows)
            return len(queries)

        assert count(many, work) == count(many[:1], home)


class TestListing:
    def test_the_list_and_the_search_show_one_label(self, alice, some):
        talk(some[0], 1)
        talk(some[1], 1)
        [work] = find_or_make_labels(alice, ["Work"])
        give_labels([work], [some[0], some[2]])
        library.archive_all([some[2]])

        def listed(**which):
            rows = library.list_conversations(alice, **which)
            return {each.title for each in narrow_to_label(rows, work.pk)}

        assert listed() == {"a"}
        assert listed(archived=True) == {"c"}
        searched = narrow_to_label(conversation_search.list_searched(alice), work.pk)
        hits = conversation_search.find_messages(alice, "text", searched)
        assert {hit.message.conversation_id for hit in hits} == {some[0].pk}
