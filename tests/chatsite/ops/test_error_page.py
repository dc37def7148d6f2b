"""Contents of DEBUG's error page and its log, and the secrets that they
must not have.
"""

import sys
from uuid import UUID

import pytest
from django.test import RequestFactory

from chatsite.ops.error_page import ExceptionReporter, hide_secrets
from chatsite.ops.logs import LineFormatter

PASSWORD = "p@ss&'w\\rd"
QUOTED = "p%40ss%26%27w%5Crd"


@pytest.fixture
def configured(settings, monkeypatch):
    """Secrets in every place that settings have for them."""
    settings.DEBUG = True
    settings.REDIS_URL = f"redis://user:{QUOTED}@127.0.0.1:6379/0"
    settings.CHANNEL_LAYERS = {"default": {"CONFIG": {"url": settings.REDIS_URL}}}
    settings.OPENAI_BASE_URL = f"https://me:{QUOTED}@example.org/v1?api_key=zap-query"
    secrets = {"PASSWORD": PASSWORD, "OPTIONS": {"sslpassword": "zap-option"}}
    database = settings.DATABASES["default"] | secrets
    monkeypatch.setitem(settings.DATABASES, "default", database)
    settings.OPENAI_API_KEY = "zap-key"
    settings.SIGNING_KEY = "zap-signature"
    settings.METRICS_TOKEN = "zap-token"
    return settings


def fail(settings):
    """Raise an error with secrets in local variables and in its own words."""
    address, credentials = settings.REDIS_URL, ("user", PASSWORD)
    raise ValueError(f"{address} refused {credentials} and {settings.OPENAI_API_KEY}")


def report_of(settings):
    try:
        fail(settings)
    except ValueError:
        reporter = ExceptionReporter(RequestFactory().get("/"), *sys.exc_info())
        return reporter.get_traceback_html(), reporter.get_traceback_text()


def test_page_shows_settings_and_variables_without_their_secrets(configured):
    html, text = report_of(configured)
    for page in (html, text):
        assert "zap-" not in page
        assert QUOTED not in page
        for shown in (PASSWORD, "p@ss&amp;", "p@ss&"):
            assert shown not in page
    assert "redis://user:********@127.0.0.1:6379/0" in html
    assert "OPENAI_BASE_URL" in html
    assert "refused" in html


@pytest.mark.parametrize("address", ["me:zap-word@gateway/v1", "me:zap-word@x:1"])
def test_an_address_without_a_scheme_has_its_password_hidden(configured, address):
    configured.OPENAI_BASE_URL = address
    assert "zap-word" not in hide_secrets(f"No scheme in {address}")


def test_the_pages_of_errors_are_made_by_it(configured, client):
    client.raise_request_exception = False
    configured.ROOT_URLCONF = __name__
    page = client.get("/fails/").content.decode()
    assert "ValueError" in page
    assert QUOTED not in page


@pytest.mark.django_db
@pytest.mark.parametrize("address", ["/nowhere/", f"/c/{UUID(int=1)}/"])
def test_unknown_addresses_have_the_sites_own_page(settings, client, alice, address):
    settings.DEBUG = True
    client.force_login(alice)
    answer = client.get(address)
    assert answer.status_code == 404
    assert "There is nothing at this address" in answer.content.decode()


def test_the_log_shows_them_no_more(configured):
    try:
        fail(configured)
    except ValueError:
        text = LineFormatter(debug=True).formatException(sys.exc_info())
    assert "ValueError" in text
    assert "zap-" not in text
    assert QUOTED not in text


def _view(request):
    from django.conf import settings

    fail(settings)


def _urlpatterns():
    from django.urls import path

    return [path("fails/", _view)]


urlpatterns = _urlpatterns()
