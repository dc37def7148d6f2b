"""The devices of a user, and logging out one of them."""

from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from chatsite.features.devices import naming, services
from chatsite.features.devices.models import Device
from chatsite.features.retention import services as retention

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
SAFARI = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 "
    "(KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1"
)
EDGE = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0"
)
PASSWORD = "correct horse battery"


@pytest.fixture
def browsers(alice):
    """Two browsers in which she has logged in."""
    alice.set_password(PASSWORD)
    alice.save()
    found = [Client(headers={"User-Agent": name}) for name in (FIREFOX, SAFARI)]
    for browser in found:
        values = {"username": alice.get_username(), "password": PASSWORD}
        assert browser.post(reverse("login"), values).status_code == 302
    return found


def page_of(browser):
    return browser.get(reverse("account")).content.decode()


@pytest.mark.parametrize(
    ("said", "browser", "system"),
    [
        (FIREFOX, "Firefox", "Linux"),
        (SAFARI, "Safari", "iPhone"),
        (EDGE, "Edge", "Windows"),
        (
            FIREFOX.replace("X11; Linux x86_64", "Android 15; Mobile"),
            "Firefox",
            "Android",
        ),
        ("curl/8.0", "", ""),
        ("", "", ""),
        ("x" * 100_000 + "Firefox/1 Linux", "", ""),
    ],
)
def test_a_browser_is_named_by_what_it_says_of_itself(said, browser, system):
    assert naming.name_browser(said) == (browser, system)


def test_the_account_page_names_each_and_which_one_this_is(browsers):
    for browser, other in (browsers, browsers[::-1]):
        page = page_of(browser)
        assert "Firefox on Linux" in page
        assert "Safari on iPhone" in page
        assert page.count("This browser") == 1
        own = Device.objects.get(session_id=browser.session.session_key)
        foreign = Device.objects.get(session_id=other.session.session_key)
        assert reverse("device-log-out", args=[foreign.pk]) in page
        assert reverse("device-log-out", args=[own.pk]) not in page


def test_device_is_logged_out_and_the_others_stay(browsers):
    here, there = browsers
    device = Device.objects.get(session_id=there.session.session_key)
    address = reverse("device-log-out", args=[device.pk])
    page = here.post(address, follow=True).content.decode()
    assert "Logged out there." in page
    assert "Safari" not in page
    assert there.get(reverse("account")).status_code == 302
    assert here.get(reverse("account")).status_code == 200
    again = here.post(address, follow=True).content.decode()
    assert "logged out already" in again


def test_device_of_another_user_cannot_be_logged_out(browsers, bob):
    stranger = Client()
    stranger.force_login(bob)
    for device in Device.objects.exclude(owner=bob):
        stranger.post(reverse("device-log-out", args=[device.pk]))
    assert all(page_of(browser) for browser in browsers)
    assert "iPhone" not in page_of(stranger)
    there = reverse("device-log-out", args=[1])
    assert stranger.get(there).status_code == 405
    assert Client().post(there).status_code == 302


def test_a_page_costs_no_statement_for_it_but_once_an_hour(browsers):
    browser = browsers[0]
    session = browser.session
    with CaptureQueriesContext(connection) as seen:
        browser.get(reverse("conversation-list"))
    assert not [one for one in seen if "devices_device" in one["sql"]]
    long_ago = timezone.now() - services.SELDOM
    Device.objects.update(last_seen_at=long_ago)
    session[services.NOTED] = (session.session_key, long_ago.timestamp())
    session.save()
    with CaptureQueriesContext(connection) as seen:
        browser.get(reverse("conversation-list"))
    assert len([one for one in seen if "devices_device" in one["sql"]]) <= 2
    device = Device.objects.get(session_id=session.session_key)
    assert timezone.now() - device.last_seen_at < services.SELDOM


def test_a_session_from_before_there_was_a_list_comes_into_it(browsers):
    session = browsers[1].session
    Device.objects.all().delete()
    del session[services.NOTED]
    session.save()
    assert "Safari on iPhone" in page_of(browsers[1])


def test_a_changed_password_keeps_this_browser_in_the_list(browsers):
    here = browsers[0]
    old = here.session.session_key
    values = {
        "old_password": PASSWORD,
        "new_password1": "another horse, another battery",
        "new_password2": "another horse, another battery",
    }
    here.post(reverse("password-change"), values)
    page = page_of(here)
    assert here.session.session_key != old
    assert "This browser" in page
    assert "Safari" not in page, "the other one was logged out"


def test_expired_device_is_deleted_with_its_session(browsers, alice):
    key = browsers[1].session.session_key
    Session.objects.filter(pk=key).update(
        expire_date=timezone.now() - timedelta(seconds=1)
    )
    assert "Safari" not in page_of(browsers[0])
    (sessions,) = (kind for kind in retention.KINDS if kind.name == "sessions")
    rows = sessions.find(timezone.now())
    assert sessions.remove(rows) == 1
    assert not Device.objects.filter(session_id=key).exists()
    assert Device.objects.filter(owner=alice).exists()


def test_a_long_list_says_that_it_is_cut(browsers, monkeypatch):
    assert "Only the latest are listed" not in page_of(browsers[0])
    monkeypatch.setattr(services, "MOST_LISTED", 1)
    page = page_of(browsers[0])
    assert "Only the latest are listed" in page
    assert page.count('id="device-') == 1


def test_the_download_has_them(browsers, alice):
    rows = services.describe_devices(alice)
    assert {row["browser"] for row in rows} == {"Firefox", "Safari"}
    assert all("session" not in name for row in rows for name in row)
