"""Pages of the admin about one conversation: rights, layout, and links to them."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache

from memory.models import Conversation

from . import redaction
from .rights import Rights, rights_of

View = Callable[..., HttpResponse]
MAX_NUMBER = 2**31 - 1


def check_rights(request: HttpRequest, *needs: str) -> Rights:
    """Return the rights of the staff member.

    Raises PermissionDenied without metadata and the rights that are named in `needs`.
    """
    rights = rights_of(request.user)
    if not all(getattr(rights, need) for need in ("metadata", *needs)):
        raise PermissionDenied
    return rights


def review_page(*needs: str) -> Callable[[View], View]:
    """Make a view of one conversation, by its `pk`, that needs these rights.

    These come besides metadata, such as "content". The view gets (request,
    conversation, rights, ...).
    """

    def decorate(view: View) -> View:
        @wraps(view)
        def guarded(request: HttpRequest, pk: int, **kwargs: Any) -> HttpResponse:
            rights = check_rights(request, *needs)
            row = get_object_or_404(redaction.select_conversations(rights), pk=pk)
            return view(request, row, rights, **kwargs)

        # For the test that walks all addresses.
        guarded.needs = needs
        return admin.site.admin_view(never_cache(guarded))

    return decorate


def render_admin(
    request: HttpRequest,
    template: str,
    model: type[Model],
    title: str,
    *,
    status: int = 200,
    **context: Any,
) -> TemplateResponse:
    """Render a page that looks like the admin's own pages of a table."""
    site = admin.site.each_context(request)
    page = {"opts": model._meta, "title": title, "subtitle": None}
    return TemplateResponse(request, template, site | page | context, status=status)


def render_page(
    request: HttpRequest,
    template: str,
    conversation: Conversation,
    title: str,
    **context: Any,
) -> TemplateResponse:
    """Render a page of a conversation in the admin, with breadcrumbs."""
    context |= {"conversation": conversation, "rights": rights_of(request.user)}
    names = {"list_title": _("Conversations"), **context}
    return render_admin(request, template, Conversation, title, **names)


def timeline_url(conversation_id: int, **params: Any) -> str:
    url = reverse("admin:review-timeline", args=[conversation_id])
    return f"{url}?{urlencode(params)}" if params else url


def timeline_link(conversation_id: int, text: str, **params: Any) -> SafeString:
    url = timeline_url(conversation_id, **params)
    return format_html('<a href="{}">{}</a>', url, text)


def query_number(request: HttpRequest, name: str) -> int | None:
    """Return a positive number from the address; None for anything else."""
    text = request.GET.get(name, "")
    is_number = text.isascii() and text.isdecimal() and len(text) <= 10
    return int(text) if is_number and 1 <= int(text) <= MAX_NUMBER else None
