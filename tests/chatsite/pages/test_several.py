"""Several conversations of the list at once: what an action does, refuses and costs."""

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from chatsite.turns import commands, lifecycle
from chatsite.turns.models import Turn
from memory import library, transcript
from memory.models import Conversation

from ..scenes import HTMX, signed_in, submit, url

pytestmark = pytest.mark.django_db
# Of nothing; the same in each process, as the names of tests are.
UNKNOWN = "7a1c0000-0000-4000-8000-000000000000"
ACTS = ("archive", "unarchive", "delete")


@pytest.fixture
def some(alice):
    return [transcript.create_conversation(alice, title=f"Talk {n}") for n in range(3)]


def ids_of(conversations):
    return [str(each.uuid) for each in conversations]


def send(client, address, **fields):
    return client.post(address, fields, headers=HTMX)


def several(client, name, conversations, **fields):
    fields["conversation"] = ids_of(conversations)
    return send(client, reverse(f"several-{name}"), **fields)


class TestSeveral:
    def test_boxes_are_drawn_on_request(self, client, some):
        page = client.get("/", {"select": 1}, headers=HTMX).content.decode()
        assert page.count('class="pick"') == 3
        assert "row-menu" not in page
        page = client.get("/", headers=HTMX).content.decode()
        assert 'class="pick"' not in page

    def test_conversations_are_archived_and_unarchived(self, client, alice, some):
        page = several(client, "archive", some[:2], select="1").content.decode()
        assert "2 conversations archived." in page
        assert 'class="pick"' not in page
        assert list(library.list_conversations(alice)) == some[2:]
        several(client, "unarchive", some[:1])
        assert library.list_conversations(alice).count() == 2

    @pytest.mark.parametrize("act", ["archive", "unarchive"])
    def test_archiving_is_undone_by_one_button(self, client, alice, some, act):
        if act == "unarchive":
            library.archive_all(some)
        before = list(library.list_conversations(alice))
        page = several(client, act, some[:2]).content.decode()
        said = page[page.index('id="list-said"') :]
        [address] = re.findall('hx-post="([^"]+)"', said)
        named = re.findall('name="conversation" value="([^"]+)"', said)
        assert set(named) == set(ids_of(some[:2]))
        send(client, address, conversation=named)
        assert list(library.list_conversations(alice)) == before

    def test_undo_leaves_alone_what_was_archived_before(self, client, alice, some):
        library.archive_all(some[:1])
        page = several(client, "archive", some[:2]).content.decode()
        assert "1 conversation archived." in page
        said = page[page.index('id="list-said"') :]
        named = re.findall('name="conversation" value="([^"]+)"', said)
        assert named == ids_of(some[1:2])
        page = several(client, "archive", some[:2]).content.decode()
        assert "Undo" not in page[page.index('id="list-said"') :]

    def test_conversations_are_deleted_and_restored_together(self, client, alice, some):
        page = several(client, "delete", some[:2]).content.decode()
        assert "2 conversations were deleted." in page
        for each in some[:2]:
            assert client.get(url("detail", each)).status_code == 404
        several(client, "undelete", some[:2])
        assert library.list_own(alice).count() == 3

    def test_each_deletion_is_undone_by_itself(self, client, some):
        several(client, "delete", some[:2])
        page = several(client, "delete", some[2:]).content.decode()
        assert "2 conversations were deleted." in page
        assert url("undelete", some[2]) in page

    def test_the_offer_to_undo_can_be_closed(self, client, alice, some, bob):
        several(client, "delete", some[:2])
        several(client, "delete", some[2:])
        several(signed_in(bob), "keep-deleted", some)
        assert library.deleted_lately(alice).count() == 3
        page = several(client, "keep-deleted", some[:2]).content.decode()
        assert "2 conversations were deleted." not in page
        assert url("undelete", some[2]) in page
        assert several(client, "undelete", some[:2]).status_code == 404

    def test_deletion_of_the_open_conversation_leaves_its_page(self, client, some):
        answer = several(client, "delete", some[:2], open=str(some[1].uuid))
        assert answer["HX-Redirect"] == reverse("conversation-list")

    def test_replies_of_deleted_conversations_stop(self, client, some):
        for text in ("One", "Two"):
            submit(some[0], text)
        claim = lifecycle.claim(some[0].pk)
        several(client, "delete", some)
        running, waiting = Turn.objects.order_by("pk")
        assert waiting.state == Turn.State.STOPPED
        assert lifecycle.checkpoint(claim, "More") is lifecycle.LeaseStatus.CANCELLED
        assert running.pk == claim.row_id

    def test_stopping_takes_statements_for_running_turns_only(self, alice, some):
        with CaptureQueriesContext(connection) as queries:
            stopped = commands.stop_each(some)
        assert stopped == {each.pk: [] for each in some}
        assert len(queries) == 1

    @pytest.mark.parametrize("name", [*ACTS, "undelete"])
    def test_largest_selection_takes_the_statements_of_one(self, client, alice, name):
        def count(number):
            made = [transcript.create_conversation(alice) for _ in range(number)]
            if name == "undelete":
                library.delete_all(made)
            with CaptureQueriesContext(connection) as queries:
                answer = several(client, name, made)
            assert answer.status_code == 200
            Conversation.objects.filter(deleted_at__isnull=False).delete()
            return len(queries)

        assert count(1) == count(library.MOST_AT_ONCE)

    def test_selection_of_too_many_or_none_is_refused(self, client, some, monkeypatch):
        monkeypatch.setattr(library, "MOST_AT_ONCE", 2)
        page = several(client, "delete", some).content.decode()
        assert "Choose at most 2 conversations at a time." in page
        assert (
            "Choose conversations first."
            in several(client, "delete", []).content.decode()
        )
        assert library.deleted_lately(some[0].owner).count() == 0

    def test_action_redirects_to_the_list_without_a_script(self, client, some):
        fields = {"conversation": ids_of(some)}
        assert client.post(reverse("several-archive"), fields).url == "/"
        refused = client.post(reverse("several-archive"))
        assert refused.status_code == 409


class TestStrangers:
    @pytest.mark.parametrize("name", [*ACTS, "undelete"])
    def test_conversations_of_other_users_are_a_404(self, bob, some, name):
        theirs = signed_in(bob)
        own = transcript.create_conversation(bob)
        assert (
            several(theirs, name, [own, some[0]][name == "undelete" :]).status_code
            == 404
        )
        stored = Conversation.objects.get(pk=some[0].pk)
        assert (stored.archived_at, stored.deleted_at) == (None, None)
        own.refresh_from_db()
        assert (own.archived_at, own.deleted_at) == (None, None)

    @pytest.mark.parametrize("value", ["x", UNKNOWN, "../", "\u202e"])
    def test_invalid_id_is_a_404(self, client, some, value):
        fields = {"conversation": [*ids_of(some), value]}
        answer = send(client, reverse("several-archive"), **fields)
        assert answer.status_code == 404
        assert library.list_conversations(some[0].owner).count() == 3

    def test_anonymous_user_is_sent_to_the_login_page(self, db):
        assert Client().post(reverse("several-delete")).url.startswith(reverse("login"))

    def test_action_needs_a_post_with_a_token(self, alice):
        strict = signed_in(alice, enforce_csrf_checks=True)
        assert strict.get(reverse("several-archive")).status_code == 405
        assert strict.post(reverse("several-archive")).status_code == 403
