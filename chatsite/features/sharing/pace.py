"""How many requests one address may make to shared pages. No pace would help to guess a
link of 192 bits: it keeps strangers from taking the time that others need.
"""

from django.conf import settings
from django.http import HttpRequest

from chatsite.ops.pace import Pace
from chatsite.proxies import client_address

# A link that opens nothing counts as so many requests.
WRONG = 10
pace = Pace()


def wait_for_address(request: HttpRequest) -> float:
    """Count a request; return the seconds that its address has to wait, and then it is
    not counted; 0 = none."""
    # A Unix socket has no address: then the proxy before it has to count.
    address = client_address(request)
    limit = settings.SHARE_REQUESTS_PER_MINUTE
    return pace.count_request(address, limit) if address else 0.0


def count_wrong(request: HttpRequest) -> None:
    """The request that was just counted has opened nothing."""
    if address := client_address(request):
        limit = settings.SHARE_REQUESTS_PER_MINUTE
        pace.count_request(address, limit, WRONG - 1, is_late=True)
