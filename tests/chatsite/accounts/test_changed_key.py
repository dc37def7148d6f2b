"""Sessions that began with an earlier SECRET_KEY."""

import pytest
from django.test import Client
from django.urls import reverse

from chatsite.accounts import sessions

pytestmark = pytest.mark.django_db
OLD, NEW = "the-key-of-last-year-" * 3, "the-key-of-this-year-" * 3


@pytest.fixture
def browser(alice, settings):
    settings.SECRET_KEY = OLD
    client = Client()
    client.force_login(alice)
    settings.SECRET_KEY = NEW
    return client


def status_of(browser):
    return browser.get(reverse("account")).status_code


def test_sessions_end_with_the_key(browser):
    assert status_of(browser) == 302


def test_sessions_continue_with_a_fallback_key(browser, settings):
    settings.SECRET_KEY_FALLBACKS = [OLD]
    assert status_of(browser) == 200
    settings.SECRET_KEY_FALLBACKS = []
    assert status_of(browser) == 200


def test_a_socket_that_comes_back_first_leaves_the_cookie_valid(
    browser, settings, alice
):
    settings.SECRET_KEY_FALLBACKS = [OLD]
    key = browser.session.session_key
    assert sessions.user_of(key) == alice
    assert sessions.find_ended({(key, alice.pk)}) == set()
    assert status_of(browser) == 200
    assert sessions.user_of(key).is_anonymous
