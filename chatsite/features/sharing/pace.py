"""The rate limit of one address on shared pages.

Links of 192 bits cannot be guessed at any rate; the limit protects the time of other
users.
"""

from django.conf import settings
from django.http import HttpRequest

from chatsite.ops.pace import Pace
from chatsite.proxies import client_address

# A link that opens nothing counts as so many requests.
WRONG = 10
# Copies of one user or address in a minute.
MOST_COPIES = 3
pace = Pace()


def wait_for_address(request: HttpRequest) -> float:
    """Count a request; return the seconds that its address has to wait, 0 = none.

    A request that has to wait is not counted.
    """
    # A Unix socket has no address: then the proxy before it has to count.
    address = client_address(request)
    limit = settings.SHARE_REQUESTS_PER_MINUTE
    return pace.count_request(address, limit) if address else 0.0


def wait_for_copy(request: HttpRequest) -> float:
    """Count a copy; return the seconds that its user or address has to wait."""
    who = request.user.pk or client_address(request)
    return pace.count_request(("copy", who), MOST_COPIES) if who else 0.0


def count_wrong(request: HttpRequest) -> None:
    """Count the last request as one that has opened nothing."""
    if address := client_address(request):
        limit = settings.SHARE_REQUESTS_PER_MINUTE
        pace.count_request(address, limit, WRONG - 1, is_late=True)
