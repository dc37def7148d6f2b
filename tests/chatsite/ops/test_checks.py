"""System checks: each wrong setting has its id, and sane ones have none."""

import pytest
from django.core import checks
from django.db import connection


@pytest.fixture
def issues(settings):
    """Sets the settings it is given and runs the checks, as for a deployment."""
    settings.DEBUG = False
    settings.ALLOWED_HOSTS = ["chat.example.com"]
    settings.SITE_ORIGINS = ["https://chat.example.com"]
    on_sqlite = connection.vendor == "sqlite"
    settings.REDIS_URL = "" if on_sqlite else "redis://127.0.0.1"

    def run(**values):
        for name, value in values.items():
            setattr(settings, name, value)
        found = checks.run_checks(include_deployment_checks=True)
        return [each.id for each in found if str(each.id).startswith("chat.")]

    return run


def test_it_accepts_sane_settings(issues):
    assert issues() == []


@pytest.mark.parametrize(
    "origin",
    [
        "http://127.0.0.1:8000",
        "https://chat.example.com:8443",
        "http://[::1]:8000",
        "https://xn--bcher-kva.example",
    ],
)
def test_it_accepts_full_origins(issues, origin):
    assert issues(SITE_ORIGINS=[origin]) == []


@pytest.mark.parametrize(
    "origin",
    [
        "chat.example.com",
        "https://chat.example.com/",
        "https://*.example.com",
        "*",
        "null",
        "ws://chat.example.com",
        "https://user@chat.example.com",
        "https://Chat.example.com",
        "https://chat.example.com:443",
        "http://chat.example.com:80",
        "https://chat.example.com\n",
    ],
)
def test_it_refuses_what_no_browser_sends_as_origin(issues, origin):
    assert "chat.E001" in issues(SITE_ORIGINS=[origin])


def test_it_refuses_every_host(issues):
    assert issues(ALLOWED_HOSTS=["chat.example.com", "*"]) == ["chat.E002"]


def test_it_warns_of_missing_origins(issues):
    assert issues(SITE_ORIGINS=[]) == ["chat.W001"]
    assert issues(SITE_ORIGINS=[], DEBUG=True) == []


def test_it_warns_of_redis_beside_sqlite_only(issues):
    expected = ["chat.W002"] if connection.vendor == "sqlite" else []
    assert issues(REDIS_URL="redis://127.0.0.1") == expected


def test_it_warns_of_several_processes_without_redis(issues):
    expected = [] if connection.vendor == "sqlite" else ["chat.W004"]
    assert issues(REDIS_URL="") == expected


@pytest.mark.parametrize(
    ("version", "expected"),
    [("4.2.1", ["chat.E003"]), ("4.2.2", []), ("4.10", []), ("5.0rc1", [])],
)
def test_it_refuses_versions_with_known_holes(issues, monkeypatch, version, expected):
    versions = {"daphne": version, "Django": "5.2.14"}
    monkeypatch.setattr("importlib.metadata.version", versions.__getitem__)
    assert issues() == expected


@pytest.mark.parametrize("name", ["LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2"])
def test_it_warns_when_chats_leave_the_site(issues, monkeypatch, name):
    monkeypatch.setenv(name, "true")
    assert issues() == ["chat.W003"]
    monkeypatch.setenv(name, "false")
    assert issues() == []
