"""Who is calling, when a proxy stands in front of the site."""

import ipaddress

from django.conf import settings
from django.http import HttpRequest

# One subscriber gets at least this many addresses of IPv6, and may call from any.
IPV6_PREFIX = 64


def client_address(request: HttpRequest) -> str | None:
    """The address that failed logins are counted by; None on a Unix socket.

    Behind a proxy it is the last one of X-Forwarded-For: that one the proxy wrote
    itself, whether it replaces what the client sent or appends to it. IPv6 addresses
    are those of their network.
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
