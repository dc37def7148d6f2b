"""Announcements: which pages have them, when, in which language, and who makes them."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from chatsite.contrib.operators.announcements import active_lines
from chatsite.contrib.operators.announcements.models import Announcement
from chatsite.features.sharing.services import create_share

from ....scenes import url

pytestmark = pytest.mark.django_db
ADD = "admin:announcements_announcement_add"


@pytest.fixture(autouse=True)
def nothing_is_left():
    yield
    active_lines._lines = []


def announce(text="Closed <b>tonight</b>", begins=-1, ends=1, **values):
    now = timezone.now()
    times = {"begins_at": now + timedelta(hours=begins)}
    times["ends_at"] = now + timedelta(hours=ends)
    made = Announcement.objects.create(text=text, **times, **values)
    active_lines.read_announced()
    return made


def test_every_page_has_it_as_plain_text(client, conversation, admin_client):
    announce()
    share = create_share(conversation)
    pages = [reverse("conversation-list"), url("detail", conversation)]
    pages.append(reverse("account"))
    answers = [client.get(page) for page in pages]
    for name, args in (("shared-page", [share.token]), ("login", [])):
        answers.append(Client().get(reverse(name, args=args)))
    answers.append(admin_client.get(reverse("admin:index")))
    for answer in answers:
        page = answer.content.decode()
        assert page.count("Closed &lt;b&gt;tonight&lt;/b&gt;") == 1, answer.request
        assert "announcements.css" in page


def test_pages_have_no_trace_without_announcements(client):
    active_lines.read_announced()
    assert "announcement" not in client.get("/").content.decode()


@pytest.mark.parametrize(("begins", "ends"), [(1, 2), (-2, -1)])
def test_announcement_is_hidden_before_and_after_its_time(begins, ends):
    announce(begins=begins, ends=ends)
    assert active_lines.list_lines() == []


def test_announcement_is_in_the_language_of_the_page(client):
    announce("Closed tonight", text_zh="今晚关闭")
    announce("No Chinese")
    page = client.get("/", headers={"accept-language": "zh-hans"}).content.decode()
    assert "今晚关闭" in page
    assert "Closed tonight" not in page
    assert "No Chinese" in page


def test_a_warning_looks_like_one(client):
    announce(level="warning")
    assert '<p class="warning" dir="auto">Closed' in client.get("/").content.decode()


def test_the_latest_three_are_shown():
    for hour in range(5):
        announce(f"No. {hour}", begins=hour - 6)
    said = [line.text for line in active_lines.list_lines()]
    assert said == ["No. 4", "No. 3", "No. 2"]


def test_pages_do_not_query_announcements(client, django_assert_max_num_queries):
    announce()
    client.get("/")
    with django_assert_max_num_queries(40) as ran:
        client.get("/")
    assert not [sql for sql in ran.captured_queries if "announce" in sql["sql"]]


@pytest.mark.django_db(transaction=True)
async def test_a_process_that_runs_finds_it_within_five_seconds(monkeypatch):
    assert active_lines.LOOK_SECONDS < 5
    await Announcement.objects.acreate(text="Found")
    monkeypatch.setattr(active_lines, "_next_look", 0.0)
    await active_lines.look_again()
    assert [line.text for line in active_lines.list_lines()] == ["Found"]
    await Announcement.objects.all().adelete()
    await active_lines.look_again()
    assert [line.text for line in active_lines.list_lines()] == ["Found"]


def form(**values):
    return {
        **{"text": "Closed", "text_zh": "", "level": "info"},
        **{"begins_at_0": "2026-11-26", "begins_at_1": "10:00"},
        **{"ends_at_0": "2026-11-26", "ends_at_1": "11:00", **values},
    }


def test_staff_with_the_permission_make_one(client, staff_with):
    user = staff_with("metadata")
    client.force_login(user)
    assert client.post(reverse(ADD), form()).status_code == 403
    rows = Permission.objects.filter(content_type__app_label="announcements")
    user.user_permissions.add(*rows)
    assert client.post(reverse(ADD), form()).status_code == 302
    assert Announcement.objects.get().text == "Closed"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"ends_at_1": "09:00"}, "The end must be after the beginning."),
        ({"text": ""}, "This field is required."),
        ({"text": "x" * 301}, "at most 300 characters"),
        ({"begins_at_0": "soon"}, "Enter a valid date"),
    ],
)
def test_form_explains_errors(admin_client, wrong, said):
    answer = admin_client.post(reverse(ADD), form(**wrong))
    assert answer.status_code == 200
    assert said in answer.content.decode()
    assert not Announcement.objects.exists()
