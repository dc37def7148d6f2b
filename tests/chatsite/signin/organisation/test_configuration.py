"""The file of providers: each mistake is one sentence that names it."""

import json

import pytest
from django.core.exceptions import ImproperlyConfigured

from chatsite.signin.organisation.configuration import make_settings, read_providers

RIGHT = {
    **{"id": "corp", "name": "Corp", "issuer": "https://login.example.org"},
    "client_id": "windowpane",
}


def write(tmp_path, *providers):
    path = tmp_path / "providers.json"
    path.write_text(json.dumps({"providers": providers}))
    return str(path)


def test_a_secret_can_be_in_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("CORP_SECRET", "hidden")
    found = read_providers(
        write(tmp_path, {**RIGHT, "client_secret_env": "CORP_SECRET"})
    )
    [app] = make_settings(found)["SOCIALACCOUNT_PROVIDERS"]["openid_connect"]["APPS"]
    assert app["secret"] == "hidden"
    assert app["settings"]["oauth_pkce_enabled"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"issuer": "http://login.example.org"}, "providers.0.issuer: .*use https"),
        ({"issuer": "login.example.org"}, "providers.0.issuer: .*in full"),
        ({"isuer": "x"}, "providers.0.isuer: Extra inputs"),
        ({"id": "The Corp"}, "providers.0.id: "),
        ({"staff": {"reviewers": ["read"]}}, "providers.0.staff.reviewers.0: "),
        ({"client_id": ""}, "providers.0.client_id: "),
        ({"recheck_seconds": 29}, "providers.0.recheck_seconds: .*at least 30"),
        ({"recheck_seconds": -1}, "providers.0.recheck_seconds: "),
    ],
)
def test_a_mistake_is_named(tmp_path, change, said):
    with pytest.raises(ImproperlyConfigured, match=said) as caught:
        read_providers(write(tmp_path, {**RIGHT, **change}))
    assert "\n" not in str(caught.value)


def test_two_have_two_ids(tmp_path):
    with pytest.raises(ImproperlyConfigured, match="the same id"):
        read_providers(write(tmp_path, RIGHT, RIGHT))


def test_a_file_that_is_none_is_named(tmp_path):
    with pytest.raises(ImproperlyConfigured, match="No such file"):
        read_providers(str(tmp_path / "none.json"))
    (tmp_path / "text.json").write_text("{")
    with pytest.raises(ImproperlyConfigured, match="the file: Invalid JSON"):
        read_providers(str(tmp_path / "text.json"))
