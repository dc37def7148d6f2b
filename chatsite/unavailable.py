"""What people see while the database is away: a page that says so, and 503."""

import logging
import sys

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils.deprecation import MiddlewareMixin
from django.views import defaults

from chatsite.chat.database import AWAY, name_of

logger = logging.getLogger(__name__)

RETRY_SECONDS = 5


class DatabaseAwayMiddleware(MiddlewareMixin):
    """For views; what other middleware runs into comes to server_error()."""

    def process_exception(
        self, request: HttpRequest, exception: Exception
    ) -> HttpResponse | None:
        return _page(exception) if isinstance(exception, AWAY) else None


def server_error(request: HttpRequest) -> HttpResponse:
    error = sys.exc_info()[1]
    return _page(error) if isinstance(error, AWAY) else defaults.server_error(request)


def _page(error: BaseException) -> HttpResponse:
    logger.warning("database away: %s", name_of(error))
    # Without the request: whoever is signed in is in the database, too.
    response = HttpResponse(render_to_string("503.html"), status=503)
    response["Retry-After"] = str(RETRY_SECONDS)
    response["Cache-Control"] = "no-store"
    return response
