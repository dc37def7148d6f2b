"""Branches on the page and in the list: effects, refusals and costs."""

import re
import uuid

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from chatsite import slots
from chatsite.features.labels.services import find_or_make_label
from chatsite.features.tree import listing, services
from chatsite.features.tree.models import Branch
from chatsite.features.tree.parts import draw_fork
from chatsite.turns import commands
from memory import transcript
from memory.models import Conversation

from ...scenes import HTMX, page_of, signed_in, submit, talk_in_turns, url, violations

pytestmark = pytest.mark.django_db


def tree_url(name, conversation):
    return reverse(f"tree-{name}", args=[conversation.uuid])


def edit(client, conversation, **fields):
    fields = {"seq": 3, "text": "Hostel", "client_id": uuid.uuid4().hex, **fields}
    return client.post(tree_url("edit", conversation), fields, headers=HTMX)


def rows_of(client, **fields):
    page = client.get("/", fields, headers=HTMX).content.decode()
    return re.findall(r'<a href="/c/([0-9a-f-]+)/', page)


def count_statements(work):
    work()
    with CaptureQueriesContext(connection) as queries:
        work()
    return len(queries)


class TestEditing:
    def test_edit_leads_to_the_branch(self, client, talked):
        answer = edit(client, talked)
        made = Branch.objects.exclude(parent=None).get().conversation
        assert answer["HX-Redirect"] == url("detail", made)
        assert "Hostel" in page_of(client, made)
        assert made.turns.last().state == "queued"

    def test_edit_works_without_scripts(self, client, talked):
        fields = {"seq": 3, "text": "Hostel", "client_id": "one"}
        answer = client.post(tree_url("edit", talked), fields)
        assert (answer.status_code, answer.url.startswith("/c/")) == (302, True)

    @pytest.mark.parametrize(
        ("fields", "says"),
        [
            ({"text": " "}, "The message is empty"),
            ({"text": "x" * 100_001}, "the limit is"),
            ({"seq": 2}, "There is no such message of yours"),
            ({"client_id": "é"}, "client_id must be"),
        ],
    )
    def test_errors_are_shown_beside_the_typed_text(self, client, talked, fields, says):
        answer = edit(client, talked, **fields)
        assert answer.status_code == 200
        assert "HX-Redirect" not in answer
        assert says in answer.content.decode()
        assert Conversation.objects.count() == 1

    def test_strangers_find_nothing(self, talked, branch, bob):
        made, other = branch(talked, 3, "Hostel"), signed_in(bob)
        assert edit(other, talked).status_code == 404
        assert other.get(tree_url("map", made)).status_code == 404
        fields = {"open": talked.uuid}
        assert other.post(tree_url("delete", made), fields).status_code == 404
        assert Branch.objects.count() == 2

    def test_the_branch_of_another_person_is_no_page_to_go_on_with(
        self, client, talked, branch, bob
    ):
        made = branch(talked, 3, "Hostel")
        theirs = transcript.create_conversation(bob, title="Secret of Bob")
        fields = {"open": theirs.uuid}
        answer = client.post(tree_url("delete", made), fields)
        assert answer["Location"] == url("detail", talked)


class TestForks:
    def test_each_way_is_reached_from_the_others(self, client, talked, branch):
        made = branch(talked, 3, "Hostel")
        page = page_of(client, talked)
        assert "1 / 2" in page
        assert f'href="{url("detail", made)}?at=3#message-3"' in page
        assert f'href="{url("detail", talked)}?at=3#message-3"' in page_of(client, made)

    def test_deleted_branch_has_no_link(self, client, talked, branch):
        services.delete_branch(branch(talked, 3, "Hostel"))
        branch(talked, 3, "Tent")
        assert "1 / 2" in page_of(client, talked)

    def test_alone_it_says_nothing(self, client, talked, branch):
        services.delete_branch(branch(talked, 3, "Hostel"))
        assert "/ 1<" not in page_of(client, talked)

    def test_a_text_of_the_map_is_text(self, client, talked, branch):
        made = branch(talked, 3, "<b>Hostel</b>")
        page = client.get(tree_url("map", made)).content.decode()
        assert "&lt;b&gt;Hostel" in page
        assert page.count("<ul") == page.count("</ul>") == 2
        assert page.count("<li>") == page.count("</li>") == 2

    def test_the_map_of_a_deep_tree_is_well_formed(self, client, talked, branch):
        made = talked
        for number in range(4):
            made = branch(made, 3 + 2 * number, f"Way {number}")
            talk_in_turns(made, "Next")
        branch(talked, 1, "Basel")
        page = client.get(tree_url("map", made)).content.decode()
        assert page.count("<ul") == page.count("</ul>")
        assert page.count("<li>") == page.count("</li>") == 6


class TestList:
    def test_row_leads_to_the_branch_opened_last(self, client, talked, branch):
        made = branch(talked, 3, "Hostel")
        assert rows_of(client) == [str(made.uuid)]
        page_of(client, talked)
        assert rows_of(client) == [str(talked.uuid)]
        page_of(client, made)
        assert rows_of(client) == [str(made.uuid)]

    def test_action_on_the_row_applies_to_all_branches(self, client, talked, branch):
        made = branch(talked, 3, "Hostel")
        label = find_or_make_label(talked.owner, "Work")
        fields = {"conversation": [str(made.uuid)]}
        client.post(reverse("label-give", args=[label.pk]), fields, headers=HTMX)
        client.post(url("pin", made), headers=HTMX)
        client.post(url("rename", made), {"title": "Cheap"}, headers=HTMX)
        for each in Conversation.objects.all():
            assert (each.title, bool(each.pinned_at)) == ("Cheap", True)
            assert [row.name for row in each.labels.all()] == ["Work"]
        page_of(client, talked)
        assert rows_of(client, label=label.pk) == [str(talked.uuid)]

    def test_conversation_is_archived_as_one(self, client, talked, branch):
        made = branch(talked, 3, "Hostel")
        client.post(url("archive", made), headers=HTMX)
        assert rows_of(client) == []
        assert rows_of(client, view="archived") == [str(made.uuid)]
        page = client.get("/", headers=HTMX).content.decode()
        assert "Archived (1)" in page

    @pytest.mark.parametrize("several", [False, True])
    def test_conversation_is_deleted_and_restored_as_one(
        self, client, talked, branch, several
    ):
        made = branch(talked, 3, "Hostel")
        submit(Conversation.objects.get(pk=talked.pk), "Still running")
        row = Conversation.objects.get(branch__is_folded=False)
        fields = {"conversation": [str(row.uuid)]}
        one = (url("delete", row), {}), (url("undelete", row), {})
        all_ = (
            (reverse("several-delete"), fields),
            (reverse("several-undelete"), fields),
        )
        delete, undelete = all_ if several else one
        page = client.post(*delete, headers=HTMX).content.decode()
        assert "was deleted." in page
        assert "conversations were deleted" not in page
        assert not Conversation.objects.filter(deleted_at=None).exists()
        assert not talked.turns.filter(state="queued").exists()
        client.post(*undelete, headers=HTMX)
        assert Conversation.objects.filter(deleted_at=None).count() == 2
        assert rows_of(client) == [str(row.uuid)]
        assert made.branch.tree == row.tree
        assert violations() == []

    def test_a_search_of_titles_finds_one(self, client, talked, branch):
        made = branch(talked, 3, "Hostel")
        assert rows_of(client, q="Trip") == [str(made.uuid)]

    def test_a_hit_in_another_branch_leads_to_it(self, client, talked, branch):
        made = branch(talked, 3, "Hostel")
        page_of(client, talked)
        page = client.get("/", {"q": "Hostel"}, headers=HTMX).content.decode()
        assert f"{url('detail', made)}?at=3#message-3" in page


class TestDeleting:
    def drop(self, client, row, shown):
        fields = {"open": shown.uuid}
        return client.post(tree_url("delete", row), fields, headers=HTMX)

    def test_branch_is_deleted_and_the_map_stays(self, client, talked, branch):
        made = branch(talked, 3, "Hostel")
        page = self.drop(client, talked, made).content.decode()
        assert "The branch was deleted." in page
        assert "Deleted" in page
        assert rows_of(client) == [str(made.uuid)]

    def test_the_shown_one_leads_to_another(self, client, talked, branch):
        made = branch(talked, 3, "Hostel")
        answer = self.drop(client, made, made)
        assert answer["HX-Redirect"] == url("detail", talked)
        assert rows_of(client) == [str(talked.uuid)]

    def test_the_last_one_is_deleted_in_the_list(self, client, talked, branch):
        made = branch(talked, 3, "Hostel")
        self.drop(client, talked, made)
        answer = self.drop(client, made, made)
        assert "This is the last branch" in answer.content.decode()
        assert rows_of(client) == [str(made.uuid)]

    def test_page_of_a_branch_deleted_in_another_tab_leads_to_one_that_is_left(
        self, client, talked, branch
    ):
        second, third = branch(talked, 3, "Hostel"), branch(talked, 5, "Bus")
        self.drop(client, second, third)
        answer = self.drop(client, third, second)
        assert answer["HX-Redirect"] == url("detail", talked)
        assert rows_of(client) == [str(talked.uuid)]


class TestWeight:
    """Someone without branches pays nothing; any number costs the same."""

    def test_a_page_without_branches_asks_nothing_more(
        self, client, talked, monkeypatch
    ):
        with_them = count_statements(lambda: page_of(client, talked))
        below = slots._parts["message.below"]
        others = [part for part in below if part.draw is not draw_fork]
        monkeypatch.setitem(slots._parts, "message.below", others)
        assert count_statements(lambda: page_of(client, talked)) == with_them

    def test_a_message_without_branches_asks_nothing_more(self, talked, monkeypatch):
        def send():
            conversation = Conversation.objects.get(pk=talked.pk)
            commands.stop_turn(conversation, submit(conversation).turn.pk)

        with_them = count_statements(send)
        monkeypatch.setattr(listing, "note_use", lambda conversation: None)
        assert count_statements(send) == with_them

    def test_any_number_of_branches_costs_the_same(self, client, talked, branch):
        def count():
            return [
                count_statements(lambda: page_of(client, made)),
                count_statements(lambda: client.get("/", headers=HTMX)),
                count_statements(lambda: client.get(tree_url("map", made))),
                count_statements(lambda: client.get("/", {"q": "Zurich"})),
            ]

        made = branch(talked, 3, "Hostel")
        before = count()
        for number in range(6):
            branch(talked, 3, f"Way {number}")
        made = branch(made, 3, "The last one")
        assert count() == before
