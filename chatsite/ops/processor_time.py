"""The processor time of each user, share link or address in this process.

Those that had more than their share have to rest until it makes up for that.

Python works at one thing at a time: while it works on one user's pages and sockets, all
others wait. It counts the time of the thread that does the work, without its waits for
the database, so users do not pay for delays that others cause.
"""

import math
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from time import monotonic, thread_time
from typing import Any

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.http import HttpRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase

from chatsite.proxies import client_address
from memory.database import TROUBLE

from .load import FOR_MACHINES, TOO_BUSY
from .open_paths import find_secret
from .unavailable import refuse_for_now

# Seconds that requests may take at once, before the share counts: a long export, or
# some hundred pages.
BURST_SECONDS = 10.0
# Those that owe nothing are forgotten when there are more.
MAX_ACCOUNTS = 10_000

Key = tuple[str, int | str | None]


class Account:
    """The used time, kept as the moment at which the share has made up for it."""

    def __init__(self) -> None:
        self._spent_until = 0.0
        # Requests are worked on in many threads.
        self._lock = Lock()

    def spend(self, seconds: float) -> None:
        percent = settings.PROCESSOR_SHARE_PER_USER
        if percent > 0:
            with self._lock:
                begin = max(self._spent_until, monotonic())
                self._spent_until = begin + seconds * 100 / percent

    def rest(self, burst: float) -> float:
        """Return the seconds until some of the share is left.

        `burst` seconds of processor time may be used in advance.
        """
        percent = settings.PROCESSOR_SHARE_PER_USER
        if percent <= 0:
            return 0.0
        return max(0.0, self._spent_until - monotonic() - burst * 100 / percent)

    @property
    def is_settled(self) -> bool:
        return self._spent_until <= monotonic()

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Count the time that this thread works meanwhile."""
        started = thread_time()
        try:
            yield
        finally:
            self.spend(thread_time() - started)


_accounts: OrderedDict[Key, Account] = OrderedDict()
_accounts_lock = Lock()


def account_of_user(user_id: int | str) -> Account:
    return _get_account(("user", user_id))


def of_request(request: HttpRequest) -> Account | None:
    """Return the account that pays for a request.

    It is the account of the signed-in user, of the link to an open page, else of the
    address. None: nothing is done, so nothing is paid.
    """
    if request.path in FOR_MACHINES or TOO_BUSY in getattr(request, "scope", ()):
        return None
    # Open pages read no session.
    if secret := find_secret(request.path):
        return _get_account(("link", secret))
    if user_id := _user_of(request):
        return account_of_user(user_id)
    return _get_account(("address", client_address(request)))


def _user_of(request: HttpRequest) -> int | None:
    # Without a cookie there is no session: the database is not asked.
    if settings.SESSION_COOKIE_NAME not in request.COOKIES:
        return None
    try:
        user_id = request.session.get(SESSION_KEY)
    except TROUBLE:
        return None  # the view runs into it, too, and says so
    return int(user_id) if user_id else None


def _get_account(key: Key) -> Account:
    with _accounts_lock:
        account = _accounts.setdefault(key, Account())
        _accounts.move_to_end(key)
        if len(_accounts) > MAX_ACCOUNTS:
            # Many new ones must not make others forget what they owe.
            for settled in [key for key, each in _accounts.items() if each.is_settled]:
                del _accounts[settled]
        while len(_accounts) > MAX_ACCOUNTS:
            _accounts.popitem(last=False)
    return account


class ProcessorTimeMiddleware:
    """The middleware that counts requests, behind the one that reads the session.

    Work that async views leave to threads counts too: it is done in the thread of the
    request.
    """

    async_capable = False
    sync_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        account = of_request(request)
        if account is None:
            return self.get_response(request)
        if seconds := account.rest(BURST_SECONDS):
            return refuse_for_now(request, 429, math.ceil(seconds))
        with account.timed():
            response = self.get_response(request)
        if isinstance(response, StreamingHttpResponse) and not response.is_async:
            response.streaming_content = _charge_parts(
                account, response.streaming_content
            )
        return response


def _charge_parts(account: Account, parts: Any) -> Iterator[bytes]:
    """Yield the parts of a response, each paid for when it is made."""
    waiting = iter(parts)
    while True:
        with account.timed():
            part = next(waiting, None)
        if part is None:
            return
        yield part
