"""What people see while the database is away: a page that says so, and 503."""

import logging
import sys

from django.http import HttpRequest, HttpResponse, HttpResponseServerError
from django.template.loader import render_to_string
from django.utils.deprecation import MiddlewareMixin

from chatsite.chat.database import is_away, name_of
from chatsite.chat.looks import looks

logger = logging.getLogger(__name__)

RETRY_SECONDS = 5


class DatabaseAwayMiddleware(MiddlewareMixin):
    """For views; what other middleware runs into comes to server_error()."""

    def process_exception(
        self, request: HttpRequest, exception: Exception
    ) -> HttpResponse | None:
        return _page(request, exception) if is_away(exception) else None


def server_error(request: HttpRequest) -> HttpResponse:
    error = sys.exc_info()[1]
    if error and is_away(error):
        return _page(request, error)
    return HttpResponseServerError(render_to_string("500.html", looks(request)))


def _page(request: HttpRequest, error: BaseException) -> HttpResponse:
    logger.warning("database away: %s", name_of(error))
    # Without the request: whoever is signed in is in the database, too.
    response = HttpResponse(render_to_string("503.html", looks(request)), status=503)
    response["Retry-After"] = str(RETRY_SECONDS)
    response["Cache-Control"] = "no-store"
    return response
