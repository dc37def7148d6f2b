"""Connections to pages that a model names: public or allowed addresses only.

The operator can allow networks. The address that a socket connects to is checked, so no
name, redirect or second answer of a name server leads elsewhere.
"""

import ipaddress
import socket
from functools import lru_cache, partial
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from django.conf import settings

from chatsite.features.tools.context import run_in_own_thread

PORTS = {80, 443}
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
# IPv4 behind a gateway of networks that have IPv6 alone.
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
# What Python does not know in each of its versions: addresses of protocols, of sites
# and of documents; and in Azure the way to the machine's own platform.
CLOSED = tuple(
    ipaddress.ip_network(each)
    for each in (
        *("168.63.129.16", "192.0.0.0/24", "192.88.99.0/24", "fec0::/10"),
        *("64:ff9b:1::/48", "3fff::/20", "5f00::/16"),
    )
)


class ClosedAddressError(OSError):
    """The address may not be connected to."""


def may_connect(host: str, port: int) -> bool:
    """Return whether a page can be read at this IP address.

    False for a name.
    """
    try:
        address = _find_inner(ipaddress.ip_address(host))
    except ValueError:
        return False
    if any(
        address in network for network in _parse_open_networks(*settings.WEB_NETWORKS)
    ):
        return True
    return port in PORTS and is_public(address)


def _find_inner(address: Address) -> Address:
    """Return the IPv4 address inside an IPv6 address, or the address itself."""
    if not isinstance(address, ipaddress.IPv6Address):
        return address
    if address in NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour or address


def is_public(address: Address) -> bool:
    """Return whether the address can belong to a public server."""
    is_special = address.is_multicast or address.is_reserved
    is_closed = is_special or any(address in network for network in CLOSED)
    return address.is_global and not is_closed


@lru_cache(maxsize=8)
def _parse_open_networks(*names: str) -> tuple[Network, ...]:
    return tuple(map(ipaddress.ip_network, names))


def open_socket(info: Any) -> socket.socket:
    """Open the socket for an address, right before it is connected to."""
    family, kind, protocol, _, (host, port, *_more) = info
    if not may_connect(host, port):
        raise ClosedAddressError("The address is not public.")
    return socket.socket(family, kind, protocol)


class _Resolver(AbstractResolver):
    """A resolver of names that uses the threads of the user.

    Those of the event loop look up the addresses of providers.
    """

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        look = partial(
            socket.getaddrinfo, host, port, family=family, type=socket.SOCK_STREAM
        )
        try:
            found = await run_in_own_thread(look)
        except UnicodeError as error:
            raise OSError("The name can't be looked up.") from error
        return [
            ResolveResult(
                hostname=host,
                host=sockaddr[0],
                port=sockaddr[1],
                family=family,
                proto=proto,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for family, _, proto, _, sockaddr in found
        ]

    async def close(self) -> None:
        """Do nothing: the resolver holds no resources."""


def make_connector(*, is_open: bool = False) -> aiohttp.TCPConnector:
    """`is_open`: to any address, for what the operator has named."""
    return aiohttp.TCPConnector(
        resolver=_Resolver(),
        use_dns_cache=False,
        socket_factory=None if is_open else open_socket,
    )
