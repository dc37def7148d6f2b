"""Labels on the page: the effect, the refusals and the cost of each action."""

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from chatsite.features.labels import services
from chatsite.features.labels.models import Label
from chatsite.features.labels.services import (
    find_or_make_label,
    find_or_make_labels,
    give_labels,
    list_labels,
)
from memory import library, transcript

from ...scenes import HTMX, signed_in, talk_in_turns, url

pytestmark = pytest.mark.django_db


@pytest.fixture
def some(alice):
    return [transcript.create_conversation(alice, title=f"Talk {n}") for n in range(3)]


@pytest.fixture
def work(alice, some):
    label = find_or_make_label(alice, "Work")
    give_labels([label], some[:1])
    return label


def ids_of(conversations):
    return [str(each.uuid) for each in conversations]


def names_on(response, conversations):
    """Return the labels in the rows of these conversations."""
    page, found = response.content.decode(), []
    for each in conversations:
        row = page[page.index(f'id="title-{each.uuid}"') :].split("</li>")[0]
        shown = row.partition('class="row-names">')[2].split("</span></span>")[0]
        found.append(re.findall('<span dir="auto">([^<]*)', shown))
    return found


def send(client, address, **fields):
    return client.post(address, fields, headers=HTMX)


def give(client, label, conversations):
    address = reverse("label-give", args=[label.pk])
    return send(client, address, conversation=ids_of(conversations))


class TestGiving:
    def test_conversation_dropped_on_a_label_gets_it(self, client, some, work):
        page = give(client, work, some).content.decode()
        assert "3 conversations labelled “Work”." in page
        assert work.conversations.count() == 3

    def test_a_typed_name_makes_a_label_once(self, client, alice, some, work):
        for name in ("Home", "hOME"):
            fields = {"conversation": ids_of(some[:2]), "name": name}
            send(client, reverse("label-new"), **fields)
        assert [each.name for each in list_labels(alice)] == ["Home", "Work"]
        assert some[0].labels.count() == 2

    def test_the_menu_of_a_row_has_its_labels(self, client, alice, some, work):
        home = find_or_make_label(alice, "Home")
        menu = client.get(url("menu", some[0])).content.decode()
        assert f'value="{work.pk}" checked' in menu
        assert f'value="{home.pk}">' in menu

    def test_the_menu_changes_what_was_switched_and_no_more(
        self, client, alice, some, work
    ):
        home, elsewhere = find_or_make_labels(alice, ["Home", "Given in another tab"])
        give_labels([elsewhere], some[:1])
        fields = {"had": [work.pk], "on": [home.pk], "name": "New"}
        page = send(client, url("labels", some[0]), **fields).content.decode()
        names = {label.name for label in some[0].labels.all()}
        assert names == {"Home", "New", "Given in another tab"}
        assert "Saved." in page

    def test_the_rows_of_the_list_name_them(self, client, alice, some, work):
        [home] = find_or_make_labels(alice, ["<b>Home"])
        give_labels([home], some[:2])
        assert names_on(client.get("/", headers=HTMX), some) == [
            ["&lt;b&gt;Home", "Work"],
            ["&lt;b&gt;Home"],
            [],
        ]
        # The one that all of them have is not said again.
        listed = client.get("/", {"label": home.pk}, headers=HTMX)
        assert names_on(listed, some[:2]) == [["Work"], []]
        found = client.get("/", {"q": "Talk 0"}, headers=HTMX)
        assert names_on(found, some[:1]) == [["&lt;b&gt;Home", "Work"]]

    def test_label_is_removed(self, client, some, work):
        address = reverse("label-take", args=[work.pk])
        send(client, address, conversation=ids_of(some))
        assert not work.conversations.exists()

    def test_a_wrong_name_is_refused_beside_what_was_typed(self, client, some):
        for name in ("", "x" * 41):
            fields = {"conversation": ids_of(some), "name": name}
            answer = send(client, reverse("label-new"), **fields)
            assert answer["HX-Retarget"] == "#list-said"
            assert b'role="alert"' in answer.content
        assert not Label.objects.exists()


class TestNaming:
    def test_a_label_is_renamed(self, client, alice, work):
        find_or_make_label(alice, "Home")
        address = reverse("label-rename", args=[work.pk])
        refused = send(client, address, name="HOME")
        assert "already have a label" in refused.content.decode()
        page = send(client, address, name="Office", label=work.pk)
        assert "Saved." in page.content.decode()

    def test_a_label_is_deleted_and_all_conversations_shown(self, client, some, work):
        address = reverse("label-delete", args=[work.pk])
        page = send(client, address, label=work.pk).content.decode()
        assert all(each.title in page for each in some)
        assert not Label.objects.exists()


class TestList:
    def test_the_address_carries_the_label(self, client, some, work):
        for address in ("/", url("detail", some[0])):
            page = client.get(address, {"label": work.pk}).content.decode()
            assert 'id="title-' in page
            assert str(some[0].uuid) in page
            assert f"{some[1].title}<" not in page
            assert f"{url('detail', some[0])}?label={work.pk}" in page

    def test_label_narrows_the_search_and_the_archive(self, client, some, work):
        give_labels([work], some[1:2])
        library.archive_all([some[1]])
        shown = {"label": work.pk, "view": "archived"}
        page = client.get("/", shown, headers=HTMX).content.decode()
        assert some[1].title in page
        assert some[0].title not in page
        page = client.get("/", {"label": work.pk}, headers=HTMX).content.decode()
        assert "Archived (1)" in page
        assert f"?label={work.pk}&amp;view=archived" in page
        found = client.get("/", {"label": work.pk, "q": "talk"}, headers=HTMX)
        page = found.content.decode()
        assert some[0].title in page
        assert some[2].title not in page

    def test_the_search_looks_at_messages_of_the_label_only(self, client, some, work):
        for each in some:
            talk_in_turns(each, "A heron stood there")
        found = client.get("/", {"label": work.pk, "q": "heron"}, headers=HTMX)
        page = found.content.decode()
        assert page.count("<mark>heron</mark>") == 2  # the message and its reply
        assert url("detail", some[1]) not in page

    @pytest.mark.parametrize("wrong", [999, "x", "-1", "9" * 30])
    def test_a_label_that_is_not_there_has_no_conversations(
        self, client, some, work, wrong
    ):
        answer = client.get("/", {"label": wrong})
        assert answer.status_code == 200
        assert some[0].title not in answer.content.decode()

    def test_names_are_text(self, client, alice, some):
        label = find_or_make_label(alice, "<b>x</b>")
        page = client.get("/", {"label": label.pk}).content.decode()
        assert "<b>x</b>" not in page
        assert "&lt;b&gt;x" in page

    # Where there are rows with labels, these are read in one statement.
    @pytest.mark.parametrize(
        ("fields", "more"), [({}, 1), ({"q": "talk"}, 1), ({"view": "archived"}, 0)]
    )
    def test_labels_and_rows_cost_one_statement(
        self, client, alice, some, fields, more
    ):
        def count(**also):
            client.get("/", {**fields, **also})
            with CaptureQueriesContext(connection) as queries:
                client.get("/", {**fields, **also})
            return len(queries)

        before = count()
        many = find_or_make_labels(alice, [f"Label {n}" for n in range(services.MOST)])
        for each in range(20):
            made = transcript.create_conversation(alice, title=f"Talk more {each}")
            give_labels(many, [made])
        assert count() == count(label=many[0].pk) == count(select=1) == before + more


def test_statements_do_not_grow_with_the_conversations(client, alice, work):
    def count(number):
        made = [transcript.create_conversation(alice) for _ in range(number)]
        with CaptureQueriesContext(connection) as queries:
            assert give(client, work, made).status_code == 200
        return len(queries)

    assert count(1) == count(library.MOST_AT_ONCE)


class TestStrangers:
    @pytest.mark.parametrize("name", ["give", "take", "rename", "delete"])
    def test_labels_of_strangers_are_404(self, bob, work, name):
        theirs, own = signed_in(bob), transcript.create_conversation(bob)
        fields = {"conversation": ids_of([own]), "name": "Mine"}
        address = reverse(f"label-{name}", args=[work.pk])
        assert send(theirs, address, **fields).status_code == 404
        work.refresh_from_db()
        assert (work.name, work.conversations.count()) == ("Work", 1)

    def test_conversations_of_strangers_get_no_label_of_mine(self, bob, some):
        mine = find_or_make_label(bob, "Mine")
        assert give(signed_in(bob), mine, some).status_code == 404
        answer = send(signed_in(bob), url("labels", some[0]), on=[mine.pk])
        assert answer.status_code == 404
        assert not mine.conversations.exists()

    def test_labels_of_strangers_are_neither_shown_nor_given(self, bob, work):
        own = transcript.create_conversation(bob, title="Own")
        page = signed_in(bob).get("/", {"label": work.pk}).content.decode()
        assert "Work" not in page
        send(signed_in(bob), url("labels", own), on=[work.pk])
        assert not own.labels.exists()

    def test_strangers_log_in_first(self, db):
        assert Client().post(reverse("label-new")).url.startswith(reverse("login"))

    def test_action_needs_a_post_with_a_token(self, alice):
        strict = signed_in(alice, enforce_csrf_checks=True)
        assert strict.get(reverse("label-new")).status_code == 405
        assert strict.post(reverse("label-new")).status_code == 403
