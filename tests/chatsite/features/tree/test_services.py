"""Branches made, listed, deleted: what each has, and what stays."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection
from django.test import override_settings

from chatsite.features.tree import listing, services
from chatsite.features.tree.models import Branch
from chatsite.protocol import events
from chatsite.protocol.errors import CommandError
from chatsite.turns import commands
from chatsite.turns.models import Turn
from memory import actions, library, transcript, versions
from memory.actions import EditChoice
from memory.models import Conversation, Message
from memory.search import conversation_search
from memory.transcript import ClientIdConflictError
from memory.view import rebuilding
from tests.memory.scenes import summarise
from tests.patience import PATIENCE

from ...scenes import answer, submit, talk_in_turns, violations

pytestmark = pytest.mark.django_db


def said(conversation):
    rows = conversation.messages.filter(role="user", superseded_at=None)
    return list(rows.order_by("seq").values_list("seq", "text"))


def listed(user):
    return list(listing.narrow_rows(library.list_conversations(user)))


class TestMaking:
    def test_branch_has_another_message_and_the_first_stays(self, talked, branch):
        made = branch(talked, 3, "Hostel")
        assert said(talked) == [(1, "Zurich"), (3, "Hotel"), (5, "Train")]
        assert said(made) == [(1, "Zurich"), (3, "Hostel")]
        assert made.turns.count() == 2
        assert violations() == []

    def test_the_first_message_can_be_said_in_another_way(self, talked, branch):
        assert said(branch(talked, 1, "Basel")) == [(1, "Basel")]
        assert violations() == []

    def test_a_branch_of_a_branch_parts_where_it_differs(self, talked, branch):
        hostel = branch(talked, 3, "Hostel")
        talk_in_turns(hostel, "Bus")
        bike = branch(hostel, 5, "Bike")
        tent = branch(bike, 3, "Tent")
        parents = {
            row.conversation: row.parent.conversation
            for row in Branch.objects.exclude(parent=None)
        }
        assert parents == {hostel: talked, bike: hostel, tent: talked}
        assert said(bike) == [(1, "Zurich"), (3, "Hostel"), (5, "Bike")]
        assert said(tent) == [(1, "Zurich"), (3, "Tent")]
        assert violations() == []

    def test_each_has_a_view_that_is_proved(self, talked, branch):
        made = branch(talked, 3, "Hostel")
        for conversation in (talked, made):
            for call in conversation.model_calls.select_related("conversation"):
                assert rebuilding.verify_context(call)
        assert made.model_calls.filter(purpose="reply").count() == 2

    def test_the_same_one_twice_is_one_branch(self, talked):
        sent = {"seq": 3, "text": "Hostel", "client_id": "one"}
        first = services.edit_as_branch(talked, **sent)
        talked = Conversation.objects.get(pk=talked.pk)
        assert services.edit_as_branch(talked, **sent) == first
        with pytest.raises(ClientIdConflictError):
            services.edit_as_branch(talked, **{**sent, "text": "Tent"})
        assert Conversation.objects.count() == 2

    def test_an_id_of_a_message_makes_no_branch(self, talked):
        known = talked.messages.get(seq=1).client_id
        with pytest.raises(ClientIdConflictError):
            services.edit_as_branch(talked, seq=3, text="Zurich", client_id=known)

    def test_branch_is_named_pinned_and_labelled_as_the_first(self, talked, branch):
        library.pin_all([talked])
        talked.refresh_from_db()
        made = branch(talked, 3, "Hostel")
        assert (made.title, bool(made.pinned_at)) == ("Trip", True)

    def test_a_running_reply_goes_on_beside_it(self, talked, branch):
        submit(talked, "And a boat?")
        made = branch(talked, 3, "Hostel")
        assert answer(talked, "Yes").state == "done"
        assert said(made) == [(1, "Zurich"), (3, "Hostel")]

    def test_running_reply_before_it_has_to_end(self, talked):
        submit(talked, "And a boat?")
        last = submit(talked, "Or a plane?").message
        with pytest.raises(CommandError, match="still being written"):
            services.edit_as_branch(talked, seq=last.seq, text="x", client_id="x")

    @pytest.mark.parametrize("seq", [2, 4, 99])
    def test_own_messages_alone_can_be_edited(self, talked, seq):
        with pytest.raises(CommandError):
            services.edit_as_branch(talked, seq=seq, text="x", client_id="x")
        assert not Branch.objects.exists()

    def test_a_temporary_conversation_has_none(self, alice):
        made = transcript.create_conversation(alice, temporary=True)
        talk_in_turns(made, "Zurich")
        with pytest.raises(CommandError, match="temporary"):
            services.edit_as_branch(made, seq=1, text="Basel", client_id="x")

    def test_branches_have_a_limit(self, talked, branch, monkeypatch):
        monkeypatch.setattr(services, "MOST", 3)
        for text in ("Hostel", "Tent"):
            branch(talked, 3, text)
        with pytest.raises(CommandError, match="3 branches, which is the limit"):
            branch(talked, 3, "Villa")
        assert len(said(talked)) == 3
        assert Conversation.objects.filter(deleted_at=None).count() == 3

    def test_copies_have_an_end_before_branches_do(self, talked, branch, monkeypatch):
        monkeypatch.setattr(services, "MOST_COPIED", 7)
        branch(talked, 3, "Hostel")
        with pytest.raises(CommandError, match="share too many messages"):
            branch(talked, 5, "Plane")

    @override_settings(CONVERSATIONS_PER_MINUTE=1)
    def test_branches_are_made_at_the_rate_of_conversations(self, talked, branch):
        for text in "abcde":
            branch(talked, 1, text)
        with pytest.raises(CommandError, match="conversations a minute"):
            branch(talked, 1, "f")

    @override_settings(MESSAGES_PER_MINUTE=1)
    def test_message_that_may_not_be_sent_is_not_copied(self, talked, branch):
        for text in "abcde":
            branch(talked, 1, text, reply=None)
        count = Conversation.objects.count()
        with pytest.raises(CommandError, match="messages a minute"):
            branch(talked, 1, "f")
        assert Conversation.objects.count() == count


class TestListing:
    def test_row_represents_all_branches_and_leads_to_the_latest(
        self, alice, talked, branch
    ):
        made = branch(talked, 3, "Hostel")
        assert listed(alice) == [made]
        listing.list_branch(talked)
        assert listed(alice) == [talked]
        assert violations() == []

    def test_writing_in_another_one_lists_it(self, alice, talked, branch):
        branch(talked, 3, "Hostel")
        submit(Conversation.objects.get(pk=talked.pk), "And a boat?")
        assert listed(alice) == [talked]

    def test_the_title_goes_over(self, alice, talked, branch):
        made = branch(talked, 3, "Hostel")
        transcript.rename_conversation(made, "Cheap trip")
        listing.list_branch(Conversation.objects.get(pk=talked.pk))
        assert [row.title for row in listed(alice)] == ["Cheap trip"]

    def test_erased_branch_leaves_the_row_to_another(self, alice, talked, branch):
        made = branch(talked, 3, "Hostel")
        library.erase_conversation(made)
        assert listed(alice) == [talked]
        # Nothing is left of it.
        assert Branch.objects.get().conversation == talked

    def test_a_parent_that_is_erased_stays_a_place(self, alice, talked, branch):
        hostel, tent = branch(talked, 3, "Hostel"), branch(talked, 3, "Tent")
        library.erase_conversation(talked)
        assert listed(alice) == [tent]
        assert Branch.objects.filter(conversation=None).count() == 1
        assert said(hostel) == [(1, "Zurich"), (3, "Hostel")]
        for each in (hostel, tent):
            library.erase_conversation(each)
        assert not Branch.objects.exists()

    def test_an_account_takes_its_branches_along(self, alice, talked, branch):
        branch(talked, 3, "Hostel")
        alice.delete()
        assert not Branch.objects.exists()
        assert not Conversation.objects.exists()


class TestDeleting:
    def test_branch_is_deleted_and_restored(self, alice, talked, branch):
        made = branch(talked, 3, "Hostel")
        services.delete_branch(made)
        assert listed(alice) == [talked]
        [offered] = listing.narrow_rows(library.deleted_lately(alice))
        assert offered == made
        found = library.restore_all(alice, [made.uuid])
        listing.note_restored(found)
        assert len(listed(alice)) == 1
        assert violations() == []

    def test_a_text_is_deleted_in_each_branch_that_has_it(self, talked, branch):
        hostel = branch(talked, 3, "Hostel")
        tent = branch(talked, 3, "Tent")
        basel = branch(talked, 1, "Basel")
        actions.delete_message(Conversation.objects.get(pk=hostel.pk), 1)
        assert not Message.objects.filter(text__icontains="Zurich", role="user")
        deleted = Message.objects.exclude(deleted_at=None)
        assert {row.conversation for row in deleted} == {talked, hostel, tent}
        assert said(basel) == [(1, "Basel")]
        assert violations() == []

    @pytest.mark.parametrize("edited", [EditChoice.KEEP, EditChoice.WRITE])
    def test_summaries_of_a_person_in_other_branches_get_the_same_answer(
        self, talked, branch, edited
    ):
        hostel = branch(talked, 3, "Hostel")
        summarise(hostel, 1, 2, text="I fly to Zurich.", model="")
        with pytest.raises(actions.EditedError, match="v1"):
            commands.delete_message(talked, 1, edited=EditChoice.ASK)
        assert said(talked)[0] == (1, "Zurich")
        commands.delete_message(talked, 1, edited=edited)
        words = [row.text for row in versions.active_summaries(hostel)]
        assert words == (["I fly to Zurich."] if edited == EditChoice.KEEP else [])
        assert said(hostel)[0] == (1, "")
        assert violations() == []

    @pytest.mark.django_db(transaction=True)
    def test_clients_of_other_branches_receive_the_end_of_their_turns(
        self, talked, branch, monkeypatch
    ):
        hostel = branch(talked, 3, "Hostel")
        seen = []
        monkeypatch.setattr(
            events, "deliver_event", lambda pk, event: seen.append((pk, event))
        )
        rows = Turn.objects.filter(conversation=hostel)
        turn = rows.get(user_message__seq=1)
        rows.filter(pk=turn.pk).update(state="queued", reply=None, text="")
        commands.delete_message(talked, 1, edited=EditChoice.ASK)
        [end] = [each for pk, each in seen if pk == hostel.pk and each.type == "end"]
        assert (end.turn, end.state) == (turn.pk, "stopped")

    def test_message_of_one_branch_alone_is_deleted_there(self, talked, branch):
        hostel = branch(talked, 3, "Hostel")
        actions.delete_message(Conversation.objects.get(pk=talked.pk), 3)
        assert said(hostel) == [(1, "Zurich"), (3, "Hostel")]

    def test_a_replaced_message_stays_replaced_in_its_branch(self, talked, branch):
        made = branch(talked, 3, "Hostel")
        commands.edit_message(talked, seq=1, text="Basel", client_id="b")
        answer(talked, "Basel, then")
        assert said(made) == [(1, "Zurich"), (3, "Hostel")]
        assert violations() == []


class TestSearching:
    def find(self, alice, query):
        found = conversation_search.find_messages(alice, query)
        return [(each.message.conversation, each.message.seq) for each in found]

    def test_messages_that_branches_share_are_found_once(self, alice, talked, branch):
        made = branch(talked, 3, "Hostel")
        assert (talked, 1) in self.find(alice, "Zurich")
        assert (made, 1) not in self.find(alice, "Zurich")
        assert self.find(alice, "Hostel") == [(made, 3)]
        other = transcript.create_conversation(alice, title="Alone")
        talk_in_turns(other, "Zurich again")
        assert (other, 1) in self.find(alice, "Zurich")

    def test_and_where_it_is_left(self, alice, talked, branch):
        made = branch(talked, 3, "Hostel")
        library.delete_conversation(talked)
        assert (made, 1) in self.find(alice, "Zurich")


@pytest.mark.django_db(transaction=True)
def test_two_tabs_that_delete_the_last_two_branches_leave_one(talked, branch):
    made = branch(talked, 3, "Hostel")
    barrier = Barrier(2)

    def delete(conversation):
        found = Conversation.objects.get(pk=conversation.pk)
        barrier.wait(10 * PATIENCE)
        try:
            return services.delete_branch(found).pk
        except CommandError as error:
            return error.code
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as threads:
        answers = [*threads.map(delete, (talked, made))]
    [left] = Conversation.objects.filter(deleted_at=None)
    assert sorted(map(str, answers)) == sorted([str(left.pk), "not_found"])
    assert violations() == []
