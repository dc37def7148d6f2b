"""The proxies whose user header is trusted.

Imported while the settings load, so this module must not read them.
"""

import ipaddress
from collections.abc import Sequence

UNIX = "unix"
ALLOWED = (
    "the addresses or networks that your proxies call from, or unix for a socket file; "
    "not all addresses: other machines could log in as any user"
)


def find_networks(proxies: Sequence[str]) -> list:
    """Return the networks of the proxies; raise ValueError for a malformed one."""
    return [ipaddress.ip_network(each) for each in proxies if each != UNIX]


def are_named(proxies: Sequence[str]) -> bool:
    """Return whether the proxies are valid and restrict who can connect.

    An empty list and a network of all addresses do not.
    """
    try:
        networks = find_networks(proxies)
    except ValueError:
        return False
    return bool(proxies) and all(each.prefixlen for each in networks)
