"""Addresses named by pages or models never lead into the operator's own network."""

import socket

import pytest

from chatsite.contrib.web import address_guard, fetching
from chatsite.contrib.web.fetching import FetchError
from tests.fakes.web import origin

PRIVATE = (
    *("127.0.0.1", "127.8.9.1", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1"),  # noqa: S104
    *("169.254.169.254", "100.64.0.1", "100.100.100.200", "192.0.0.192", "198.18.0.1"),
    *("224.0.0.1", "240.0.0.1", "255.255.255.255", "168.63.129.16", "192.0.2.1"),
    *("::1", "::", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "fe80::1"),
    *("fe80::1%lo", "fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1", "2002:7f00:1::"),
    *("3fff::1", "64:ff9b::7f00:1", "64:ff9b::a00:1", "64:ff9b:1::1", "2001::1"),
    "2001:db8::1",
    *("localhost", "", "2130706433", "0x7f000001", "017700000001", "127.1"),
)
# As a model or a redirect can write them: all of them are this machine or its network.
FORMS = (
    *("127.0.0.1", "localhost", "LOCALHOST", "localhost.", "127.1", "127.0.1"),
    *("2130706433", "0x7f000001", "0x7f.0.0.1", "017700000001", "0177.0.0.1", "0"),
    *("0.0.0.0", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]"),  # noqa: S104
    *("[0:0:0:0:0:ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]"),
    *("[fe80::1%25lo]", "①②⑦.⓪.⓪.①", "127。0。0。1", "user@127.0.0.1"),
    *("127.0.0.1%00.example.org", "127.0.0.2", "169.254.169.254", "10.0.0.1"),
    *("192.168.0.1", "172.16.0.1", "100.64.0.1", "[fd00::1]", "168.63.129.16"),
)


@pytest.mark.parametrize("address", PRIVATE)
def test_addresses_that_are_not_public_are_closed(address):
    assert not address_guard.may_connect(address, 80)


@pytest.mark.parametrize(
    "address", ["93.184.215.14", "2606:2800:21f::1", "::ffff:93.184.215.14"]
)
def test_public_addresses_are_open_at_the_ports_of_the_web(address):
    assert address_guard.may_connect(address, 80)
    assert address_guard.may_connect(address, 443)
    assert not address_guard.may_connect(address, 6379)


def test_public_pages_are_read_over_ipv6_alone():
    assert address_guard.may_connect("64:ff9b::5db8:d70e", 443)


def test_the_operator_can_open_a_network(settings):
    settings.WEB_NETWORKS = ["10.1.2.0/24", "fd00::7"]
    assert address_guard.may_connect("10.1.2.3", 8080)
    assert address_guard.may_connect("::ffff:10.1.2.3", 8080)
    assert address_guard.may_connect("fd00::7", 80)
    assert not address_guard.may_connect("10.1.3.3", 80)
    assert not address_guard.may_connect("fd00::8", 80)


@pytest.mark.parametrize("host", FORMS)
async def test_closed_address_is_refused_in_every_form(
    host, inside, connected, monkeypatch
):
    port = inside.server_address[1]
    # That the port alone keeps it out would be no proof.
    monkeypatch.setattr(address_guard, "PORTS", {80, 443, port})
    for scheme in ("http", "https"):
        with pytest.raises(FetchError):
            await fetching.fetch_page(f"{scheme}://{host}:{port}/article")
    assert _of_web(connected) == []
    assert inside.seen == []


def _of_web(connected):
    """Return the sockets without those of name servers and of the event loop."""
    places = [each for each in connected if isinstance(each, tuple)]
    return [each for each in places if each[1] != 53]


@pytest.mark.parametrize("host", ["127.0.0.2", "0177.0.0.2", "localhost", "[::1]"])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_checked_as_any_address(web, inside, host, status):
    port = inside.server_address[1]
    target = f"http://{host}:{port}/article"
    with pytest.raises(FetchError):
        await fetching.fetch_page(f"{web.origin}/to?status={status}&url={target}")
    assert len(web.seen) == 1
    assert inside.seen == []


@pytest.mark.parametrize(
    "target",
    [
        "file:///etc/passwd",
        "ftp://127.0.0.1/",
        "gopher://127.0.0.1:70/",
    ],
)
async def test_a_redirect_leads_to_pages_only(web, target):
    with pytest.raises(FetchError):
        await fetching.fetch_page(f"{web.origin}/to?url={target}")
    assert len(web.seen) == 1


async def test_a_name_whose_address_changes_is_looked_up_once(
    web, inside, connected, monkeypatch, settings
):
    """The checked address is the one that is connected to, so a name server that gives
    a public address first and another one afterwards gains nothing.
    """
    answers = ["127.0.0.1", "127.0.0.2", "127.0.0.2"]
    port = web.server_address[1]

    def look_up(host, asked, **options):
        assert host == "rebind.example"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (answers.pop(0), asked))]

    monkeypatch.setattr(address_guard.socket, "getaddrinfo", look_up)
    found = await fetching.fetch_page(f"http://rebind.example:{port}/article")
    assert b"Kamo" in found.data
    assert _of_web(connected) == [("127.0.0.1", port)]
    with pytest.raises(FetchError, match="public pages only"):
        await fetching.fetch_page(f"http://rebind.example:{port}/article")
    assert _of_web(connected) == [("127.0.0.1", port)]
    assert inside.seen == []


async def test_name_with_several_addresses_uses_the_open_ones(
    web, connected, monkeypatch
):
    port = web.server_address[1]

    def look_up(host, asked, **options):
        hosts = ("127.0.0.2", "127.0.0.1", "10.0.0.1")
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, asked)) for each in hosts
        ]

    monkeypatch.setattr(address_guard.socket, "getaddrinfo", look_up)
    found = await fetching.fetch_page(f"http://several.example:{port}/article")
    assert b"Kamo" in found.data
    assert _of_web(connected) == [("127.0.0.1", port)]


async def test_proxy_of_the_environment_is_ignored(web, inside, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "https_proxy"):
        monkeypatch.setenv(name, origin(inside))
    assert b"Kamo" in (await fetching.fetch_page(f"{web.origin}/article")).data
    assert inside.seen == []
