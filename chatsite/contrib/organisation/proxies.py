"""The proxies whose header is believed. Loaded with the settings, so it knows none."""

import ipaddress
from collections.abc import Sequence

UNIX = "unix"
ALLOWED = (
    "the addresses or networks that your proxies call from, or unix for a socket file, "
    "and not all there are: from elsewhere anyone could log in as anyone"
)


def find_networks(proxies: Sequence[str]) -> list:
    """Raises ValueError."""
    return [ipaddress.ip_network(each) for each in proxies if each != UNIX]


def are_named(proxies: Sequence[str]) -> bool:
    """Whether there are some, and not all."""
    try:
        networks = find_networks(proxies)
    except ValueError:
        return False
    return bool(proxies) and all(each.prefixlen for each in networks)
