"""The address of the client, also behind a proxy."""

import ipaddress

from django.conf import settings
from django.http import HttpRequest

# One subscriber gets at least this many addresses of IPv6, and may call from any.
IPV6_PREFIX = 64


def client_address(request: HttpRequest) -> str | None:
    """Return the address by which failed logins are counted; None on a Unix socket.

    Behind a proxy it is the last one of X-Forwarded-For: the proxy itself wrote that
    one, whether it replaces what the client sent or appends to it. IPv6 addresses are
    those of their network.
    """
    address = request.META.get("REMOTE_ADDR") or None
    if settings.BEHIND_PROXY:
        forwarded = request.headers.get("X-Forwarded-For", "").rpartition(",")[2]
        address = forwarded.strip() or address
    try:
        return _without_host(address) if address else None
    except ValueError:
        return request.META.get("REMOTE_ADDR")


def _without_host(address: str) -> str:
    parsed = ipaddress.ip_address(address)
    if parsed.version == 4:
        return address
    if parsed.ipv4_mapped:
        return str(parsed.ipv4_mapped)
    network = ipaddress.ip_network((int(parsed), IPV6_PREFIX), strict=False)
    return str(network.network_address)
