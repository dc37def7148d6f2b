"""Access checks of pages, and the page that a form leads back to."""

from collections.abc import Callable
from functools import wraps
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render, resolve_url
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods
from django_htmx.http import HttpResponseClientRedirect

from chatsite import plugins
from memory import transcript
from memory.models import Conversation

View = Callable[..., HttpResponse]
# The values of a template, or another answer than the template.
Values = dict[str, Any] | HttpResponse


def private_page(*methods: str) -> Callable[[View], View]:
    """Restrict a view to these methods and to signed-in users, and forbid caching it.

    GET includes HEAD.
    """
    allowed = [*methods, "HEAD"] if "GET" in methods else [*methods]

    def decorate(view: View) -> View:
        guarded = login_required(view)

        @wraps(view)
        def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            if request.htmx and not request.user.is_authenticated:
                # A redirect would put the log-in page into the middle of this one.
                return HttpResponseClientRedirect(resolve_url(settings.LOGIN_URL))
            if request.user.is_authenticated:
                plugins.page_opened.send_robust(None, request=request)
            return guarded(request, *args, **kwargs)

        return require_http_methods(allowed)(never_cache(checked))

    return decorate


def conversation_view(method: str) -> Callable[[View], View]:
    """Restrict a view to this method, and give it the user's conversation for its id.

    Conversations of other users are not found, like those that never existed.
    """

    def decorate(view: View) -> View:
        @wraps(view)
        def guarded(request: HttpRequest, uuid: UUID, **kwargs: Any) -> HttpResponse:
            try:
                conversation = transcript.get_for(request.user, uuid)
            except Conversation.DoesNotExist:
                raise Http404 from None
            return view(request, conversation, **kwargs)

        return private_page(method)(guarded)

    return decorate


def conversation_fragment(
    template: str, method: str = "GET"
) -> Callable[[Callable[..., Values]], View]:
    """Make a conversation_view() of a function that returns a template's values.

    The template gets the conversation besides.
    """

    def decorate(view: Callable[..., Values]) -> View:
        @conversation_view(method)
        @wraps(view)
        def drawn(
            request: HttpRequest, conversation: Conversation, **kwargs: Any
        ) -> HttpResponse:
            found = view(request, conversation, **kwargs)
            if isinstance(found, HttpResponse):
                return found
            return render(request, template, {"conversation": conversation, **found})

        return drawn

    return decorate


def lead_back(request: HttpRequest, otherwise: str = "/") -> HttpResponse:
    """Redirect to the page of this site that a form names as `next`.

    Does not use redirect(), which takes a value without a slash for the name of a view.
    """
    page = request.POST.get("next", "")
    is_ours = page.startswith("/") and url_has_allowed_host_and_scheme(page, None)
    return HttpResponseRedirect(page if is_ours else otherwise)
