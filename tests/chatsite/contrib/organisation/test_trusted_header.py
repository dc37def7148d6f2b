"""The header of a proxy that has logged a user in: believed from there alone."""

import pytest
from django.contrib.auth import get_user_model
from django.http import HttpRequest
from django.test import AsyncClient

from chatsite.contrib.organisation.proxies import are_named
from chatsite.contrib.organisation.trusted_header import HeaderError, read_header

AUTH = "django.contrib.auth.middleware.AuthenticationMiddleware"
HEADER = "chatsite.contrib.organisation.trusted_header.TrustedHeaderMiddleware"
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def trusting(settings):
    """The tests' client calls from 127.0.0.1."""
    settings.TRUSTED_USER_HEADER = "Remote-User"
    settings.TRUSTED_USER_PROXIES = ["127.0.0.0/8"]
    place = settings.MIDDLEWARE.index(AUTH) + 1
    with_header = [*settings.MIDDLEWARE]
    with_header.insert(place, HEADER)
    settings.MIDDLEWARE = with_header


async def ask(client, **headers):
    answer = await client.get("/account/", headers=headers)
    return answer.status_code


async def test_header_logs_the_named_user_in_and_others_out(alice):
    client = AsyncClient()
    answer = await client.get("/account/", headers={"Remote-User": "alice"})
    assert b"alice" in answer.content
    assert await ask(client) == 302
    assert await ask(client, **{"remote-user": "alice"}) == 200
    answer = await client.get("/account/", headers={"Remote-User": "bob"})
    assert b"Logged in as bob" in answer.content


async def test_a_new_account_has_no_password(db):
    assert await ask(AsyncClient(), **{"remote-user": "carol"}) == 200
    carol = await get_user_model().objects.aget(username="carol")
    assert not carol.has_usable_password()
    assert not carol.is_staff


async def test_header_from_other_addresses_is_ignored(alice, settings):
    settings.TRUSTED_USER_PROXIES = ["10.0.0.0/8", "unix"]
    said = {"remote-user": "alice", "x-forwarded-for": "10.0.0.1"}
    assert await ask(AsyncClient(), **said) == 302


@pytest.mark.parametrize(
    ("sent", "named"),
    [
        ([(b"remote-user", b"alice")], "alice"),
        ([(b"remote_user", b"alice")], ""),
        ([(b"remote_user", b"root"), (b"remote-user", b"alice")], "alice"),
    ],
)
def test_header_with_underscores_is_another_header(sent, named):
    """Django would take both for the same one."""
    request = HttpRequest()
    request.scope = {"headers": sent}
    assert read_header(request) == named


def test_duplicate_user_header_is_rejected():
    request = HttpRequest()
    request.scope = {"headers": [(b"remote-user", b"root"), (b"remote-user", b"a")]}
    with pytest.raises(HeaderError):
        read_header(request)


@pytest.mark.parametrize("name", ["a, b", "<b>", "x" * 151, "\u00e9\u0000"])
async def test_a_name_that_can_be_none_is_refused(db, name):
    header = name.encode().decode("latin-1")
    assert await ask(AsyncClient(), **{"remote-user": header}) == 403
    assert not await get_user_model().objects.aexists()


async def test_a_deactivated_account_stays_out(alice):
    client = AsyncClient()
    assert await ask(client, **{"remote-user": "alice"}) == 200
    await get_user_model().objects.aupdate(is_active=False)
    assert await ask(client, **{"remote-user": "alice"}) == 403
    assert await ask(client) == 302


async def test_a_log_in_by_password_needs_no_header(alice):
    client = AsyncClient()
    await client.aforce_login(alice, "django.contrib.auth.backends.ModelBackend")
    assert await ask(client) == 200


@pytest.mark.parametrize(
    ("proxies", "is_right"),
    [
        (["10.0.0.1", "fd00::/8", "unix"], True),
        (["unix"], True),
        ([], False),
        (["10.0.0.1", "0.0.0.0/0"], False),
        (["::/0"], False),
        (["proxy.example"], False),
    ],
)
def test_proxies_must_be_named(proxies, is_right):
    assert are_named(proxies) == is_right
