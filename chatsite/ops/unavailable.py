"""The error pages of a site that cannot do its work.

They are 503 while the database is away or the process has too much to do, 429 for a
user who has had more than a share of it, 400 for what the database does not take, 413
for a body that was too large to be received.
"""

import logging
import sys
from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils.deprecation import MiddlewareMixin
from django.views.defaults import page_not_found

from chatsite.accounts.appearance import appearance_of
from chatsite.database import RefusedInputError
from memory.database import is_away, name_of

from .load import TOO_BUSY, TOO_LARGE

logger = logging.getLogger(__name__)

RETRY_SECONDS = 5


class UnavailableMiddleware(MiddlewareMixin):
    """The error pages for views.

    Errors in other middleware come to server_error().
    """

    # As the innermost it makes all of them run in the request's thread, where each
    # would otherwise go there and back twice.
    async_capable = False

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        scope = getattr(request, "scope", ())
        if TOO_LARGE in scope:
            return _render_error(request, 413)
        if TOO_BUSY in scope:
            return refuse_for_now(request, 503, RETRY_SECONDS, is_busy=True)
        return None

    def process_response(
        self, request: HttpRequest, response: HttpResponse
    ) -> HttpResponse:
        # A list of patterns does not help people who try the site with DEBUG.
        is_unknown = response.status_code == 404 and request.resolver_match is None
        if settings.DEBUG and is_unknown:
            return page_not_found(request, Http404())
        return response

    def process_exception(
        self, request: HttpRequest, exception: Exception
    ) -> HttpResponse | None:
        if isinstance(exception, Http404):
            return page_not_found(request, exception)
        if isinstance(exception, RefusedInputError):
            logger.warning("%s", exception)
            return _render_error(request, 400)
        return _database_away(request, exception) if is_away(exception) else None


def server_error(request: HttpRequest) -> HttpResponse:
    error = sys.exc_info()[1]
    if error and is_away(error):
        return _database_away(request, error)
    return _render_error(request, 500)


def _database_away(request: HttpRequest, error: BaseException) -> HttpResponse:
    logger.warning("database away: %s", name_of(error))
    return refuse_for_now(request, 503, RETRY_SECONDS)


def _render_error(request: HttpRequest, status: int, **values: Any) -> HttpResponse:
    # Without the request: the signed-in user is in the database, too.
    context = {**appearance_of(request), **values}
    return HttpResponse(render_to_string(f"{status}.html", context), status=status)


def refuse_for_now(
    request: HttpRequest, status: int, seconds: int, **values: Any
) -> HttpResponse:
    """Return the error page of a request that can be made again in some seconds."""
    response = _render_error(request, status, seconds=seconds, **values)
    response["Retry-After"] = str(seconds)
    response["Cache-Control"] = "no-store"
    return response
