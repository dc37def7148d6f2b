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


def test_checks_accept_sane_settings(issues):
    assert issues() == []


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({"CHAT_MODEL": "gpt-9"}, ["chat.E008"]),
        ({"CHAT_MODELS": ["gpt-8", "gpt-9"]}, ["chat.E008"] * 2),
        ({"CHAT_MODEL": "demo"}, []),
        ({"CHAT_MODEL": "gpt-9", "OPENAI_API_KEY": "sk-1"}, []),
        ({"CHAT_MODEL": "gpt-9", "OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, []),
    ],
)
def test_models_without_a_provider_are_an_error(issues, values, found):
    assert issues(**values) == found


def test_a_host_of_every_name_is_an_error(issues):
    assert issues(ALLOWED_HOSTS=["chat.example.com", "*"]) == ["chat.E002"]


def test_missing_origins_are_a_warning(issues):
    assert issues(SITE_ORIGINS=[]) == ["chat.W001"]
    assert issues(SITE_ORIGINS=[], DEBUG=True) == []


def test_redis_beside_sqlite_is_a_warning(issues):
    expected = ["chat.W002"] if connection.vendor == "sqlite" else []
    assert issues(REDIS_URL="redis://127.0.0.1") == expected


def test_several_processes_without_redis_are_a_warning(issues):
    expected = [] if connection.vendor == "sqlite" else ["chat.W004"]
    assert issues(REDIS_URL="") == expected


@pytest.mark.parametrize(
    ("version", "expected"),
    [("4.2.1", ["chat.E003"]), ("4.2.2", []), ("4.10", []), ("5.0rc1", [])],
)
def test_versions_with_known_holes_are_an_error(issues, monkeypatch, version, expected):
    versions = {"daphne": version, "Django": "5.2.14"}
    monkeypatch.setattr("importlib.metadata.version", versions.__getitem__)
    assert issues() == expected


@pytest.mark.parametrize("name", ["LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2"])
def test_chats_that_leave_the_site_are_a_warning(issues, monkeypatch, name):
    monkeypatch.setenv(name, "true")
    assert issues() == ["chat.W003"]
    monkeypatch.setenv(name, "false")
    assert issues() == []


@pytest.mark.parametrize(
    ("address", "expected"),
    [("socks5://127.0.0.1:1", ["chat.W006"]), ("http://127.0.0.1:1", [])],
)
def test_a_proxy_that_is_of_no_use_is_a_warning(issues, monkeypatch, address, expected):
    monkeypatch.setenv("ALL_PROXY", address)
    assert issues() == expected
