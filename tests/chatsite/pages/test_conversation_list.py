"""The list as a page: sections, acts on rows, search, deleting and bringing back."""

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone, translation

from chatsite.pages.presenters import conversation_list, transcript_pane
from chatsite.turns import commands, lifecycle
from chatsite.turns.models import Turn
from memory import library, transcript
from memory.models import Conversation
from tests.remembered import remembered

from ..scenes import HTMX, signed_in, talk_in_turns, url

ACTS = ("pin", "unpin", "archive", "unarchive", "delete")


def age(conversation, days):
    when = timezone.now() - timedelta(days=days)
    Conversation.objects.filter(pk=conversation.pk).update(updated_at=when)


def test_titles_are_found_in_other_forms(alice):
    made = transcript.create_conversation(alice, title="Reise nach Zürich (C++)")
    for query in ("zurich", "ZÜR", "(c++)", "Zu\u0308"):
        [section] = conversation_list.make_list(alice, {"q": query})["sections"]
        assert [row.pk for row in section.rows] == [made.pk]


class TestSections:
    def test_list_groups_by_the_day_of_the_latest_change(self, alice):
        for days in (0, 1, 3, 7, 40):
            age(transcript.create_conversation(alice, title=f"{days} days"), days)
        library.pin_all([Conversation.objects.get(title="40 days")])
        age(transcript.create_conversation(alice, title="old"), 400)
        found = list(conversation_list.group_by_day(library.list_conversations(alice)))
        assert [(each.name, len(each.rows)) for each in found][:4] == [
            ("Pinned", 1),
            ("Today", 1),
            ("Yesterday", 1),
            ("Previous 7 days", 2),
        ]
        month = timezone.localtime() - timedelta(days=400)
        assert found[4].name == f"{month:%B %Y}"

    def test_list_uses_the_days_of_the_sites_zone(self, alice):
        made = transcript.create_conversation(alice)
        evening = timezone.now().replace(hour=23, minute=30) - timedelta(days=1)
        Conversation.objects.update(updated_at=evening)
        made.refresh_from_db()
        with timezone.override("Asia/Tokyo"):
            today = timezone.localtime(evening).date()
            assert conversation_list._name_section(made, today) == "Today"
        with timezone.override("UTC"):
            assert conversation_list._name_section(made, today) == "Yesterday"

    def test_list_names_months_in_the_language_of_the_page(self, alice):
        age(transcript.create_conversation(alice), 400)
        with translation.override("zh-hans"):
            [section] = conversation_list.group_by_day(
                library.list_conversations(alice)
            )
        assert "年" in section.name

    def test_list_shows_more_on_request(self, client, alice, monkeypatch):
        monkeypatch.setattr(conversation_list, "PAGE", 2)
        for number in range(3):
            transcript.create_conversation(alice, title=f"Number {number}")
        page = client.get("/").content.decode()
        assert "Number 0" not in page
        assert "show=4" in page
        assert "Number 0" in client.get("/", {"show": 4}).content.decode()


class TestActs:
    @pytest.mark.parametrize("name", ACTS)
    def test_action_is_a_404_for_another_user(self, conversation, bob, name):
        assert signed_in(bob).post(url(name, conversation)).status_code == 404
        stored = Conversation.objects.get()
        assert (stored.pinned_at, stored.archived_at, stored.deleted_at) == (None,) * 3

    @pytest.mark.parametrize("name", [*ACTS, "undelete"])
    def test_action_needs_a_post_with_a_token(self, alice, conversation, name):
        strict = signed_in(alice, enforce_csrf_checks=True)
        assert strict.get(url(name, conversation)).status_code == 405
        assert strict.post(url(name, conversation)).status_code == 403

    def test_action_renders_the_list_again_for_htmx(self, client, conversation):
        answer = client.post(url("pin", conversation), headers=HTMX)
        page = answer.content.decode()
        assert "<html" not in page
        assert page.index("Pinned") < page.index("Trip to Kyoto")

    def test_action_marks_the_open_conversation_again(self, client, conversation):
        fields = {"open": str(conversation.uuid), "view": "", "q": ""}
        page = client.post(url("archive", conversation), fields, headers=HTMX)
        assert b"Archived" in page.content
        page = client.post(url("unarchive", conversation), fields, headers=HTMX)
        assert b'aria-current="page"' in page.content

    def test_archived_ones_have_a_view_of_their_own(self, client, conversation):
        client.post(url("archive", conversation))
        assert b"Trip to Kyoto" not in client.get("/").content
        assert b"Trip to Kyoto" in client.get("/", {"view": "archived"}).content
        assert b"Trip to Kyoto" in client.get("/", {"q": "kyoto"}).content

    def test_menu_offers_the_actions_on_a_row(self, client, conversation):
        menu = client.get(url("menu", conversation)).content.decode()
        for name in ("rename", "pin", "archive", "delete"):
            assert url(name, conversation) in menu


class TestDelete:
    PAGES = ("detail", "messages", "context", "transcript", "menu")

    def test_deletion_removes_a_conversation_from_every_page(
        self, client, conversation
    ):
        client.post(url("delete", conversation))
        for name in self.PAGES:
            assert client.get(url(name, conversation)).status_code == 404
        assert b"Reply to: Hello" not in client.get("/", {"q": "hello"}).content

    def test_deletion_can_be_undone(self, client, conversation):
        client.post(url("delete", conversation))
        assert b"was deleted" in client.get("/").content
        answer = client.post(url("undelete", conversation))
        assert answer.url == url("detail", conversation)
        assert client.get(answer.url).status_code == 200

    def test_deletion_can_be_undone_by_the_owner_alone(self, client, conversation, bob):
        client.post(url("delete", conversation))
        assert signed_in(bob).post(url("undelete", conversation)).status_code == 404
        assert b"Trip to Kyoto" not in signed_in(bob).get("/").content

    def test_deletion_of_the_open_conversation_leaves_its_page(
        self, client, conversation
    ):
        fields = {"open": str(conversation.uuid)}
        answer = client.post(url("delete", conversation), fields, headers=HTMX)
        assert answer["HX-Redirect"] == reverse("conversation-list")

    def test_deletion_stops_running_and_waiting_turns(self, client, conversation):
        for text in ("One", "Two"):
            commands.submit_message(conversation, text=text, client_id=text)
        claim = lifecycle.claim(conversation.pk)
        client.post(url("delete", conversation))
        running, waiting = Turn.objects.order_by("pk")[2:]
        assert waiting.state == Turn.State.STOPPED
        assert lifecycle.checkpoint(claim, "More") is lifecycle.LeaseStatus.CANCELLED
        assert running.pk == claim.row_id


class TestSearch:
    def test_search_links_to_the_message(self, client, conversation):
        page = client.get("/", {"q": "budget"}).content.decode()
        assert f"{url('detail', conversation)}?at=3#message-3" in page
        assert "<mark>budget</mark>" in page

    def test_hits_of_one_conversation_have_its_title_once(self, client, alice):
        for title in ("Lamps", "Beds"):
            made = transcript.create_conversation(alice, title=title)
            talk_in_turns(made, "The zebra costs 7.", "The zebra costs 8.", reply="Ok")
        page = client.get("/", {"q": "zebra"}).content.decode()
        found = page.partition('<ul class="found">')[2].partition("</ul>")[0]
        assert found.count("<mark>zebra</mark>") == 4
        assert [found.count(f">{title}<") for title in ("Lamps", "Beds")] == [1, 1]
        assert found.count("<time ") == 4

    def test_search_hides_conversations_of_others(self, bob, conversation):
        page = signed_in(bob).get("/", {"q": "budget"}).content.decode()
        assert "budget?" not in page
        assert "Trip to Kyoto" not in page

    def test_search_escapes_its_hits(self, client, alice):
        made = transcript.create_conversation(alice, title="t")
        talk_in_turns(made, "<img src=x> needle <b>bold</b>", reply="ok")
        page = client.get("/", {"q": "needle"}).content.decode()
        assert "<img src=x>" not in page
        assert "&lt;b&gt;bold" in page


class TestAt:
    @pytest.fixture
    @remembered
    def long(self, alice):
        made = transcript.create_conversation(alice)
        rows = [f"Text {n}" for n in range(12)]
        talk_in_turns(made, *rows)
        return made

    @pytest.fixture(autouse=True)
    def small_pages(self, long, monkeypatch):
        monkeypatch.setattr("chatsite.pages.presenters.transcript_pane.PAGE_TURNS", 3)
        monkeypatch.setattr("chatsite.pages.presenters.transcript_pane.LEAD_TURNS", 2)
        monkeypatch.setitem(
            transcript_pane.show_latest_turns.__kwdefaults__, "turns", 3
        )

    def test_page_shows_the_turns_around_a_message_and_the_latest(self, client, long):
        page = client.get(url("detail", long), {"at": 7}).content.decode()
        shown = [n for n in range(1, 25, 2) if f'id="message-{n}"' in page]
        assert shown == [5, 7, 9, 11, 13, 19, 21, 23]
        assert "Show earlier messages" in page
        assert "Show the messages between" in page

    def test_the_gap_can_be_closed(self, client, long):
        ids = list(long.turns.order_by("pk").values_list("pk", flat=True))
        fields = {"after": ids[6], "before": ids[9]}
        page = client.get(url("messages", long), fields).content.decode()
        shown = [n for n in range(1, 25, 2) if f'id="message-{n}"' in page]
        assert shown == [15, 17]
        assert 'class="earlier gap"' not in page

    @pytest.mark.parametrize("at", [20, 24, 999])
    def test_page_ignores_a_number_of_the_latest_page(self, client, long, at):
        page = client.get(url("detail", long), {"at": at}).content.decode()
        assert 'class="earlier gap"' not in page
        assert 'id="message-1"' not in page

    @pytest.mark.parametrize("at", ["0", "-1", "x", "9" * 30])
    def test_page_refuses_an_invalid_number(self, client, long, at):
        assert client.get(url("detail", long), {"at": at}).status_code == 404
