"""Keys of clients: made and shown once, recognised, refused alike, revoked."""

import html
import re
from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from chatsite.contrib.endpoint import keys
from chatsite.contrib.endpoint.demo import offer_demo_key
from chatsite.contrib.endpoint.models import ApiKey
from tests.chatsite.scenes import signed_in

from .asgi_client import ask

pytestmark = pytest.mark.django_db


def make_key(client, **fields):
    values = {"name": "Open WebUI", "days": "90", "tokens_per_day": ""}
    values |= {"mode": "observe"}
    page = client.post(reverse("api-key-make"), {**values, **fields})
    return page, re.findall(r"wp_[\w-]{43}", html.unescape(page.content.decode()))


def test_a_key_is_shown_once_and_kept_as_its_hash(client):
    page, [key] = make_key(client)
    assert page.headers["Cache-Control"].startswith("max-age=0, no-cache, no-store")
    row = ApiKey.objects.get()
    assert row.sha256 == keys.hash_key(key)
    assert key not in str(ApiKey.objects.values())
    account = client.get(reverse("account")).content.decode()
    assert key not in account
    assert row.hint in account
    assert "Open WebUI" in account


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("name", ""), ("name", "x" * 61), ("days", "-1"), ("tokens_per_day", "0")),
        ("mode", "half"),
    ],
)
def test_invalid_form_makes_no_key(client, field, value):
    page, found = make_key(client, **{field: value})
    assert page.status_code == 422
    assert not found
    assert not ApiKey.objects.exists()


def test_number_of_keys_is_limited(client, monkeypatch):
    monkeypatch.setattr(keys, "MAX_VALID", 1)
    make_key(client)
    page, found = make_key(client)
    assert page.status_code == 422
    assert not found
    assert "You have 1 keys" in page.content.decode()


def test_revoking_is_only_for_the_owner(alice, bob):
    row, key = keys.create_api_key(alice, "aider")
    where = reverse("api-key-revoke", args=[row.pk])
    assert signed_in(bob).post(where).status_code == 404
    assert keys.find_api_key(key)
    assert signed_in(alice).post(where).status_code == 302
    assert keys.find_api_key(key) is None


def spoil(row, how):
    now = timezone.now()
    if how == "locked":
        row.owner.is_active = False
        row.owner.save()
    before = now - timedelta(seconds=1)
    values = {"expired": {"expires_at": before}, "revoked": {"revoked_at": now}}
    ApiKey.objects.filter(pk=row.pk).update(**values.get(how, {}))


@pytest.mark.parametrize("how", ["wrong", "expired", "revoked", "locked"])
def test_invalid_key_costs_one_statement(alice, how, django_assert_num_queries):
    row, key = keys.create_api_key(alice, "aider")
    spoil(row, how)
    with django_assert_num_queries(1):
        assert keys.find_api_key(f"{key}x" if how == "wrong" else key) is None


@pytest.mark.django_db(transaction=True)
def test_invalid_keys_get_the_same_answer(alice, bob):
    sent = ["", "wp_" + "x" * 43, "sk-of-someone-else", "x" * 10_000]
    for owner, how in ((alice, "expired"), (alice, "revoked"), (bob, "locked")):
        row, key = keys.create_api_key(owner, "aider")
        spoil(row, how)
        sent.append(key)
    answers = [async_to_sync(ask)("/v1/models", key=key) for key in sent]
    assert [status for status, *_ in answers] == [401] * len(sent)
    assert all(each == answers[0] for each in answers)
    _, headers, body = answers[0]
    assert body["error"]["code"] == "invalid_api_key"
    assert not {name for name in headers if name.startswith("access-control")}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("mode", ["closed", "open"])
def test_invalid_keys_take_the_same_work(alice, bob, settings, monkeypatch, mode):
    settings.ENDPOINT_WITHOUT_STORE = mode
    hashed, hash_key = [], keys.hash_key
    monkeypatch.setattr(
        keys, "hash_key", lambda key: hashed.append(len(key)) or hash_key(key)
    )
    done = []
    for owner, how in (
        *((alice, "wrong"), (alice, "expired"), (alice, "revoked"), (bob, "locked")),
    ):
        row, key = keys.create_api_key(owner, "aider")
        spoil(row, how)
        hashed.clear()
        with CaptureQueriesContext(connection) as asked:
            sent = f"wp_{key[:2:-1]}" if how == "wrong" else key
            async_to_sync(ask)("/v1/models", key=sent)
        said = [re.sub("'[0-9a-f]{64}'", "HASH", each["sql"]) for each in asked]
        done.append((said, [*hashed]))
    assert all(each == done[0] for each in done)
    said, lengths = done[0]
    assert len(said) == 1
    assert len(lengths) == (1 if mode == "closed" else 2)


def test_the_last_use_is_written_once_a_minute(alice, django_assert_num_queries):
    row, key = keys.create_api_key(alice, "aider")
    assert keys.find_api_key(key)
    with django_assert_num_queries(1):
        assert keys.find_api_key(key)
    before = ApiKey.objects.get().last_used_at
    ApiKey.objects.update(last_used_at=F("last_used_at") - timedelta(minutes=2))
    assert keys.find_api_key(key)
    assert ApiKey.objects.get().last_used_at >= before


def test_a_key_has_tokens_of_its_own(alice):
    row, key = keys.create_api_key(alice, "aider", tokens_per_day=100)
    keys.charge_api_key(row.pk, 99)
    keys.check_tokens(keys.find_api_key(key))
    keys.charge_api_key(row.pk, 1)
    with pytest.raises(keys.CommandError, match="100 tokens"):
        keys.check_tokens(keys.find_api_key(key))
    ApiKey.objects.update(day=timezone.localdate() - timedelta(days=1))
    keys.check_tokens(keys.find_api_key(key))


def test_a_script_makes_a_key(alice, capsys):
    call_command("create_key", "alice", "--name", "llm", "--models", "a,b")
    found = keys.find_api_key(capsys.readouterr().out.strip())
    assert (found.name, found.models_allowed) == ("llm", ["a", "b"])
    wrong_kind = ["alice", "--kind", "gateway"]
    for wrong in (["nobody"], ["alice", "--scope", "everything"], wrong_kind):
        with pytest.raises(CommandError):
            call_command("create_key", *wrong)


def test_form_sets_the_rights_of_a_key(client, alice):
    make_key(client, mode="bound", may_read="on")
    [row] = keys.list_api_keys(alice)
    assert (row.mode, row.scopes) == ("bound", ["send", "read"])
    assert "Shorten when too long" in client.get(reverse("account")).content.decode()


def test_staff_see_keys_without_their_hash(alice, staff):
    row, _ = keys.create_api_key(alice, "aider")
    where = reverse("admin:endpoint_apikey_changelist")
    listed = signed_in(staff).get(where).content.decode()
    shown = signed_in(staff).get(reverse("admin:endpoint_apikey_change", args=[row.pk]))
    assert "aider" in listed
    assert row.sha256 not in listed + shown.content.decode()
    found = signed_in(staff).get(where, {"sha256__startswith": row.sha256[0]})
    assert found.status_code in (302, 400)


@pytest.mark.parametrize(
    ("path", "method", "host", "status"),
    [
        ("/v1/models", "GET", "evil.example", 400),
        ("/v1/nothing", "GET", "testserver", 404),
        ("/v1/models", "POST", "testserver", 405),
    ],
)
def test_unknown_address_method_or_host_is_refused(path, method, host, status):
    found, _, body = async_to_sync(ask)(path, method=method, host=host)
    assert found == status
    assert body["error"]["message"]


def test_the_download_of_the_account_has_no_hash(alice):
    keys.create_api_key(alice, "aider")
    [row] = keys.describe_api_keys(alice)
    assert row["name"] == "aider"
    assert "sha256" not in row


def test_demo_key_is_new_at_each_start(alice, settings):
    settings.DEBUG = True
    assert offer_demo_key("127.0.0.1", "8000") == ""  # there is no user demo
    alice.username = "demo"
    alice.save()
    told = [offer_demo_key("127.0.0.1", "8000") for _ in range(2)]
    first, second = (re.search(r"wp_[\w-]{43}", text)[0] for text in told)
    assert keys.find_api_key(first) is None
    assert keys.find_api_key(second).owner == alice
    assert offer_demo_key("0.0.0.0", "8000") == ""  # noqa: S104
    settings.DEBUG = False
    assert offer_demo_key("127.0.0.1", "8000") == ""


def test_site_starts_if_the_demo_user_has_the_most_keys(alice, settings):
    settings.DEBUG = True
    alice.username = "demo"
    alice.save()
    for number in range(keys.MAX_VALID):
        keys.create_api_key(alice, f"Client {number}")
    assert offer_demo_key("127.0.0.1", "8000") == ""
