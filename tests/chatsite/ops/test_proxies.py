"""The address that failed logins are counted by."""

import pytest
from django.test import Client

from chatsite.proxies import client_address


@pytest.fixture
def address(rf, settings):
    settings.BEHIND_PROXY = True

    def of(forwarded=None, remote="127.0.0.1"):
        headers = {} if forwarded is None else {"X-Forwarded-For": forwarded}
        return client_address(rf.get("/", REMOTE_ADDR=remote, headers=headers))

    return of


@pytest.mark.parametrize(
    ("forwarded", "expected"),
    [
        ("203.0.113.7", "203.0.113.7"),
        # A proxy that appends leaves what the client made up before its own entry.
        ("198.51.100.1, 203.0.113.7", "203.0.113.7"),
        ("198.51.100.1,,  203.0.113.7 ", "203.0.113.7"),
        # A client with one address of IPv6 has all of its network.
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("nonsense", "127.0.0.1"),
        ("203.0.113.7:4711", "127.0.0.1"),
        ("", "127.0.0.1"),
        (None, "127.0.0.1"),
    ],
)
def test_address_is_the_entry_of_the_proxy(address, forwarded, expected):
    assert address(forwarded) == expected


def test_headers_are_ignored_without_a_proxy(address, settings):
    settings.BEHIND_PROXY = False
    assert address("203.0.113.7") == "127.0.0.1"
    assert address("203.0.113.7", remote="2001:db8:1:2:3::9") == "2001:db8:1:2::"


def test_address_is_unknown_on_a_unix_socket(address):
    assert address(remote="") is None


def guess(client, forwarded):
    form = {"username": "alice", "password": "wrong"}
    headers = {"X-Forwarded-For": forwarded}
    return client.post("/accounts/login/", form, headers=headers).status_code


def test_a_made_up_address_does_not_reset_the_lock(alice, settings):
    settings.BEHIND_PROXY = True
    client = Client()
    found = [guess(client, f"198.51.100.{n}, 203.0.113.7") for n in range(12)]
    assert found[:8] == [200] * 8
    assert found[-1] == 429
    assert guess(client, "203.0.113.8") == 200
