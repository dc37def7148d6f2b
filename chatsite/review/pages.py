"""The desk's own views: within the admin, for those who have the right, about one
conversation.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache

from memory.models import Conversation

from . import redaction
from .rights import rights_of

View = Callable[..., HttpResponse]


def desk_view(*needs: str) -> Callable[[View], View]:
    """A view of one conversation by its `pk`; `needs` names the rights it takes beside
    metadata, such as "content". The view gets (request, conversation, rights, ...).
    """

    def decorate(view: View) -> View:
        @wraps(view)
        def guarded(request: HttpRequest, pk: int, **kwargs: Any) -> HttpResponse:
            rights = rights_of(request.user)
            if not all(getattr(rights, need) for need in ("metadata", *needs)):
                raise PermissionDenied
            row = get_object_or_404(redaction.conversations(rights), pk=pk)
            return view(request, row, rights, **kwargs)

        # For whoever wants to know, such as the test that walks all addresses.
        guarded.needs = needs
        return admin.site.admin_view(never_cache(guarded))

    return decorate


def render(
    request: HttpRequest,
    template: str,
    conversation: Conversation,
    title: str,
    **context: Any,
) -> TemplateResponse:
    """A page that looks like the admin's own, with the way back in its breadcrumbs."""
    values = {
        **admin.site.each_context(request),
        "opts": Conversation._meta,
        "conversation": conversation,
        "rights": rights_of(request.user),
        "title": title,
        "subtitle": None,
        "list_title": _("Conversations"),
        **context,
    }
    return TemplateResponse(request, template, values)
