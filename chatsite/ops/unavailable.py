"""What people see when the database gives no rows: 503 and a page that says so while it
is away, 400 for what it can't hold.
"""

import logging
import sys

from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBadRequest,
    HttpResponseServerError,
)
from django.template.loader import render_to_string
from django.utils.deprecation import MiddlewareMixin

from chatsite.accounts.appearance import appearance_of
from chatsite.database import RefusedInputError, is_away, name_of

logger = logging.getLogger(__name__)

RETRY_SECONDS = 5


class DatabaseMiddleware(MiddlewareMixin):
    """For views; what other middleware runs into comes to server_error()."""

    def process_exception(
        self, request: HttpRequest, exception: Exception
    ) -> HttpResponse | None:
        if isinstance(exception, RefusedInputError):
            logger.warning("%s", exception)
            page = render_to_string("400.html", appearance_of(request))
            return HttpResponseBadRequest(page)
        return _page(request, exception) if is_away(exception) else None


def server_error(request: HttpRequest) -> HttpResponse:
    error = sys.exc_info()[1]
    if error and is_away(error):
        return _page(request, error)
    return HttpResponseServerError(render_to_string("500.html", appearance_of(request)))


def _page(request: HttpRequest, error: BaseException) -> HttpResponse:
    logger.warning("database away: %s", name_of(error))
    # Without the request: the signed-in user is in the database, too.
    response = HttpResponse(
        render_to_string("503.html", appearance_of(request)), status=503
    )
    response["Retry-After"] = str(RETRY_SECONDS)
    response["Cache-Control"] = "no-store"
    return response
