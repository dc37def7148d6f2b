"""Branches that are exported together and are one conversation again once imported."""

import jsonschema
import pytest

from chatsite.features.importing import storing
from chatsite.features.importing.exporting.for_staff import mask_export
from chatsite.features.importing.exporting.thread import export_thread
from chatsite.features.importing.thread_format import build_thread_state
from chatsite.features.tree import export as branches
from chatsite.features.tree import listing, services
from chatsite.features.tree.models import Branch
from memory import library
from memory.leases import LostError
from memory.models import Conversation

from ...scenes import talk_in_turns, violations
from ..importing.test_importing import as_json, take
from .test_services import listed, said

pytestmark = pytest.mark.django_db


def export(user):
    """Return the export of Download everything: the oldest first."""
    rows = library.list_own(user).order_by("pk")
    return {"conversations": [as_json(export_thread(row)) for row in rows]}


def partings(user):
    """Return the last words of each branch of the user, with those of its parent."""
    rows = Branch.objects.filter(owner=user).exclude(parent=None)
    found = rows.select_related("conversation", "parent__conversation")
    return {
        said(row.conversation)[-1][1]: (said(row.parent.conversation)[-1][1], row.seq)
        for row in found
    }


@pytest.fixture
def hostel(talked, branch):
    return branch(talked, 3, "Hostel")


class TestRoundTrip:
    def test_branches_come_back_as_one_conversation(self, alice, bob, hostel):
        outcome = take(bob, export(alice))
        assert len(outcome.imported) == 2
        assert partings(bob) == {"Hostel": ("Train", 3)}
        [shown] = listed(bob)
        assert said(shown) == said(hostel)
        assert violations() == []

    def test_branches_of_branches_part_where_they_did(self, alice, bob, hostel, branch):
        talk_in_turns(hostel, "Bus")
        bike = branch(hostel, 5, "Bike")
        branch(bike, 3, "Tent")
        listing.list_branch(hostel)
        value = export(alice)
        take(bob, value)
        assert partings(bob) == partings(alice)
        [shown] = listed(bob)
        assert said(shown) == said(hostel)
        again = [row.pop("branches") for row in export(bob)["conversations"]]
        assert [[row["seq"] for row in rows] for rows in again] == [[], [3], [5], [3]]
        assert violations() == []

    def test_branch_at_the_first_message_is_imported(self, alice, bob, talked, branch):
        branch(talked, 1, "Basel")
        take(bob, export(alice))
        assert partings(bob) == {"Basel": ("Train", 1)}

    def test_missing_parent_is_passed_over(self, alice, bob, talked, hostel, branch):
        talk_in_turns(hostel, "Bus")
        branch(hostel, 5, "Bike")
        services.delete_branch(hostel)
        take(bob, export(alice))
        assert partings(bob) == {"Bike": ("Train", 3)}
        assert violations() == []

    def test_branches_stand_alone_without_the_first_one(
        self, alice, bob, talked, hostel
    ):
        services.delete_branch(talked)
        [made] = take(bob, export(alice)).imported
        assert made.tree is None
        assert listed(bob) == [made]

    def test_later_branch_is_joined_and_not_shown(self, alice, bob, hostel):
        first, second = export(alice)["conversations"]
        [made] = take(bob, first).imported
        [later] = take(bob, second).imported
        assert partings(bob) == {"Hostel": ("Train", 3)}
        assert listed(bob) == [made]
        assert said(later) == said(hostel)
        assert violations() == []

    def test_branch_erased_here_joins_its_tree_again(self, alice, talked, hostel):
        value = export(alice)
        library.erase_conversation(hostel)
        outcome = take(alice, value)
        assert outcome.known == [talked]
        assert partings(alice) == {"Hostel": ("Train", 3)}
        assert violations() == []

    @pytest.mark.parametrize("end", ["delete", "erase"])
    def test_branch_is_shown_if_its_first_goes_in_the_meantime(
        self, alice, talked, hostel, monkeypatch, end
    ):
        value = export(alice)
        library.erase_conversation(hostel)
        finish = storing.queue.close_job

        def be_late(*args, **values):
            getattr(library, f"{end}_conversation")(talked)
            return finish(*args, **values)

        monkeypatch.setattr(storing.queue, "close_job", be_late)
        [made] = take(alice, value).imported
        assert listed(alice) == [made]
        assert violations() == []

    @pytest.mark.parametrize("end", ["delete", "erase"])
    def test_branch_stands_alone_if_its_first_goes_during_the_comparison(
        self, alice, talked, hostel, monkeypatch, end
    ):
        value = export(alice)
        library.erase_conversation(hostel)
        compare = branches._parts_from

        def be_late(*args):
            is_same = compare(*args)
            getattr(library, f"{end}_conversation")(talked)
            return is_same

        monkeypatch.setattr(branches, "_parts_from", be_late)
        [made] = take(alice, value).imported
        assert made.tree is None
        assert listed(alice) == [made]
        assert violations() == []

    def test_half_written_branch_leaves_nothing(
        self, alice, talked, hostel, monkeypatch
    ):
        value = export(alice)
        library.erase_conversation(hostel)

        def die(*args, **values):
            raise LostError

        monkeypatch.setattr(storing.queue, "close_job", die)
        with pytest.raises(AssertionError):  # its job goes on
            take(alice, value)
        assert Branch.objects.filter(seq=3).count() == 1
        assert listed(alice) == [talked]
        assert violations() == []
        library.purge_deleted()
        assert Branch.objects.filter(seq=3).count() == 0
        assert listed(alice) == [talked]
        assert violations() == []

    def test_a_second_time_changes_nothing(self, alice, bob, hostel):
        value = export(alice)
        take(bob, value)
        rows = list(Branch.objects.order_by("pk").values())
        assert len(take(bob, value).known) == 2
        assert list(Branch.objects.order_by("pk").values()) == rows

    def test_a_copy_without_texts_has_no_text(self, hostel):
        [row] = mask_export(export_thread(hostel))["branches"]
        assert set(row) == {"parent", "seq", "listed"}

    def test_an_export_of_one_follows_the_schema(self, hostel):
        schema = build_thread_state().model_json_schema(mode="serialization")
        value = as_json(export_thread(hostel))
        jsonschema.validate(value, schema)
        value["branches"][0]["other"] = 1
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(value, schema)

    def test_a_conversation_without_branches_has_none(self, talked):
        assert export_thread(talked)["branches"] == []


def forge(path, value):
    *parents, last = path

    def change(item):
        for key in parents:
            item = item[key]
        item[last] = value

    return change


FORGED = {
    "other words before": forge(["messages", 0, "text"], "Zug"),
    "another number": forge(["branches", 0, "seq"], 4),
    "no such number": forge(["branches", 0, "seq"], 99),
    "no such conversation": forge(
        ["branches", 0, "parent"], "11111111-2222-4333-8444-555555555555"
    ),
}


class TestForged:
    @pytest.mark.parametrize("name", FORGED)
    def test_conversation_with_another_beginning_stands_alone(
        self, alice, bob, hostel, name
    ):
        value = export(alice)
        FORGED[name](value["conversations"][1])
        outcome = take(bob, value)
        assert len(outcome.imported) == 2
        assert not Branch.objects.filter(owner=bob).exists()
        assert len(listed(bob)) == 2
        assert violations() == []

    def test_a_parent_is_the_person_s_own(self, alice, bob, hostel):
        before = list(Branch.objects.values())
        value = export(alice)["conversations"][1]
        [made] = take(bob, value).imported
        assert made.tree is None
        assert list(Branch.objects.values()) == before

    @pytest.mark.parametrize("parent", ["../../etc", "", 7, None])
    def test_other_names_are_refused(self, alice, bob, hostel, parent):
        value = export(alice)["conversations"][1]
        value["branches"][0]["parent"] = parent
        [why] = take(bob, value).notices
        assert "entry 1 of its branches" in why

    def test_branches_beyond_the_limit_stand_alone(
        self, alice, bob, hostel, monkeypatch
    ):
        value = export(alice)
        monkeypatch.setattr(services, "MOST", 1)
        outcome = take(bob, value)
        assert len(listed(bob)) == len(outcome.imported) == 2
        assert not Branch.objects.filter(owner=bob).exists()
        assert Conversation.objects.filter(owner=bob, tree=None).count() == 2
        assert violations() == []
