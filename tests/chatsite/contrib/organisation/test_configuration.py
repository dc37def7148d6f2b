"""The file of providers: each mistake is one sentence that names it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from chatsite.contrib.organisation import encryption
from chatsite.contrib.organisation.configuration import (
    list_apps,
    make_settings,
    read_providers,
)
from chatsite.contrib.organisation.saml.metadata import parse_metadata
from tests.fakes.saml_provider import Key, SamlIdentityProvider

RIGHT = {
    **{"id": "corp", "name": "Corp", "issuer": "https://login.example.org"},
    "client_id": "windowpane",
}

# By a release whose app was called chatsite.signin.
OLD_CODE = (
    "gAAAAAAAAAABAAAAAAAAAAAAAAAAAAAAAFnFyZ-KBgMuEoJ09Maa3k98TL9T"
    "OO46QXJi6H1nop1G_LN7yVAgpUNjUTemOZNA2w=="
)
OLD_TOKEN = (
    "gAAAAAAAAAABAAAAAAAAAAAAAAAAAAAAAOX-dkl0cdV_A_ykaas6g1svVvbR"
    "53iqGsdZ5Z3tnW0snph0MMN3Wmx0K23hom3CXg=="
)


SAML = {
    **{"protocol": "saml", "id": "corp", "name": "Corp"},
    **{"entity_id": "corp", "sso_url": "https://login.example.org/sso"},
}


@pytest.fixture(scope="module")
def certificate():
    return Key().certificate


@pytest.fixture(scope="module")
def metadata():
    provider = SamlIdentityProvider()
    provider.server.server_close()
    return provider.publish()


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


def test_file_with_a_field_twice_is_refused(tmp_path):
    path = write(tmp_path, {**RIGHT, "members": ["chat"]})
    text = Path(path).read_text().replace('"members"', '"members": [], "members"')
    Path(path).write_text(text)
    with pytest.raises(ImproperlyConfigured, match="'members' stands twice"):
        read_providers(path)


def test_a_file_that_is_none_is_named(tmp_path):
    with pytest.raises(ImproperlyConfigured, match="No such file"):
        read_providers(str(tmp_path / "none.json"))
    (tmp_path / "text.json").write_text("{")
    with pytest.raises(ImproperlyConfigured, match="the file: Invalid JSON"):
        read_providers(str(tmp_path / "text.json"))


class TestSaml:
    def test_a_certificate_is_pem_or_what_is_in_it(self, tmp_path, certificate):
        bare = "".join(certificate.splitlines()[1:-1])
        found = read_providers(
            write(tmp_path, {**SAML, "certificates": [certificate, bare]})
        )
        [app] = make_settings(found)["SOCIALACCOUNT_PROVIDERS"]["saml"]["APPS"]
        assert app["provider_id"] == "corp"
        name = "allauth.socialaccount.providers.saml"
        assert name in list_apps(found, with_second_factor=False)

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            ({}, "providers.0: .*belong together"),
            ({"certificates": ["MIIB"]}, "corp: a certificate is none"),
            ({"certificates": ["MIIB"], "entity_id": ""}, "providers.0: .*together"),
            ({"metadata_file": "x"}, "providers.0: .*give metadata_file, metadata_url"),
            ({"sso_url": "http://login.example.org"}, "providers.0.sso_url: .*https"),
            ({"metadata_url": "http://a.example"}, "providers.0.metadata_url: .*https"),
            ({"issuer": "https://a.example"}, "providers.0.issuer: Extra inputs"),
            ({"recheck_seconds": 30}, "providers.0: .*no token.*use session_seconds"),
            ({"session_seconds": -1}, "providers.0.session_seconds: .*or equal to 0"),
            ({"protocol": "ldap"}, "providers.0: the protocol is oidc or saml"),
        ],
        ids=str,
    )
    def test_a_mistake_is_named(self, tmp_path, change, said):
        with pytest.raises(ImproperlyConfigured, match=said) as caught:
            read_providers(write(tmp_path, {**SAML, **change}))
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            (None, "can't be read: No such file"),
            ("<", "no XML that can be believed"),
            ("<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", "no XML that can be believed"),
            ("<a/>", "0 providers of identities"),
            ("two", "2 providers of identities"),
            ("no place", "no address for HTTP-Redirect"),
            ("no key", "no certificate"),
            ("http", "use https"),
        ],
    )
    def test_metadata_that_do_not_say_enough_are_named(
        self, tmp_path, metadata, text, said
    ):
        path = tmp_path / "metadata.xml"
        texts = {
            "two": f"<all>{metadata}{metadata}</all>",
            "no place": metadata.replace("HTTP-Redirect", "HTTP-POST"),
            "no key": metadata.replace('use="signing"', 'use="encryption"'),
            "http": metadata.replace("127.0.0.1", "login.example.org"),
        }
        if text is not None:
            path.write_text(texts.get(text, text))
        given = {name: SAML[name] for name in ("protocol", "id", "name")}
        with pytest.raises(ImproperlyConfigured, match=f"corp: .*{said}"):
            read_providers(write(tmp_path, {**given, "metadata_file": str(path)}))

    def test_entity_id_selects_one_of_several_entities(self, metadata):
        other = metadata.replace("entityID=", 'entityID="other" was=')
        both = f"<all>{metadata}{other}</all>".encode()
        assert parse_metadata(both, "other").entity_id == "other"

    def test_start_without_the_saml_libraries_names_the_missing_lock(
        self, tmp_path, monkeypatch
    ):
        name = "chatsite.contrib.organisation.saml.metadata"
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(
            ImproperlyConfigured, match=r"needs requirements/saml\.lock"
        ):
            read_providers(write(tmp_path, {**SAML, "certificates": ["MIIB"]}))

    @pytest.mark.parametrize("protocol", ["oidc", "saml"])
    def test_saml_libraries_load_only_for_saml_providers(
        self, tmp_path, certificate, protocol
    ):
        saml = {**SAML, "certificates": [certificate]}
        path = write(tmp_path, RIGHT if protocol == "oidc" else saml)
        code = (
            "import os, sys, django; django.setup(); "
            "from django.urls import reverse; reverse('login'); "
            "print({'onelogin', 'xmlsec', 'lxml'} & set(sys.modules))"
        )
        env = {**os.environ, "SIGNIN_PROVIDERS": path, "DEBUG": "true"}
        env["DJANGO_SETTINGS_MODULE"] = "chatsite.settings"
        done = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert (done.stdout == "set()\n") == (protocol == "oidc")


@pytest.mark.parametrize(
    "name", ["SIGNIN_PROVIDERS", "SECOND_FACTOR", "TRUSTED_USER_HEADER"]
)
def test_a_site_without_the_app_does_not_start_with_its_settings(name):
    """The site would be open without its second factor, and would give no warning."""
    value = {"SECOND_FACTOR": "staff"}.get(name, "given")
    env = {**os.environ, "EXTRAS": "lab", name: value}
    done = subprocess.run(
        [sys.executable, "-c", "import chatsite.settings"],
        **{"env": env, "capture_output": True, "text": True},
    )
    assert done.returncode == 1
    assert "EXTRAS does not name organisation; add it" in done.stderr


def test_values_sealed_by_earlier_releases_open(settings):
    settings.SIGNING_KEY = "a key"
    tokens = {encryption.SECRETS: OLD_CODE, encryption.TOKENS: OLD_TOKEN}
    opened = [encryption.open_sealed(*each) for each in tokens.items()]
    assert opened == ["a code", "a token"]
