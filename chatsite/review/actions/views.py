"""The acts on one conversation, each a POST from its pages in the admin."""

from collections.abc import Callable
from functools import wraps
from uuid import UUID

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from chatsite.accounts.access import lead_back
from memory.actions import ActionError
from memory.models import Conversation

from ..models import Tombstone
from ..rights import Rights, rights_of
from . import apply, exporting
from .forms import RebuildForm, ReviewForm, first_error
from .reviewing import State

Act = Callable[[HttpRequest, Conversation, Rights], HttpResponseBase | str]


def act(*needs: str) -> Callable[[Act], Callable[..., HttpResponse]]:
    """A POST that does something and goes back to the page it came from, where a
    message says what was done, or why not."""

    def decorate(view: Act) -> Callable[..., HttpResponse]:
        @require_POST
        @wraps(view)
        def acted(request: HttpRequest, pk: int) -> HttpResponse:
            rights = rights_of(request.user)
            if not all(getattr(rights, need) for need in ("metadata", *needs)):
                raise PermissionDenied
            try:
                rows = Conversation.objects.select_related("owner")
                done = view(request, rows.get(pk=pk), rights)
            except Conversation.DoesNotExist:
                return gone(request)
            except ActionError as error:
                messages.error(request, str(error))
                return _back(request, pk)
            if isinstance(done, HttpResponseBase):
                return done
            messages.success(request, done)
            return _back(request, pk)

        return admin.site.admin_view(never_cache(acted))

    return decorate


def gone(request: HttpRequest) -> HttpResponse:
    """Somebody was faster; the tombstone says who, where there is one."""
    text = _("This conversation is gone already: nothing was done.")
    if stone := Tombstone.objects.filter(
        conversation__in=posted_uuids(request)
    ).first():
        text = _("%(user)s has erased this conversation already: nothing was done.")
        text %= {"user": stone.username}
    messages.warning(request, text)
    return redirect("admin:memory_conversation_changelist")


def posted_uuids(request: HttpRequest) -> list[UUID]:
    """What the form was about, known by what outlives the rows."""
    try:
        return [UUID(text) for text in request.POST.getlist("uuid")]
    except ValueError:
        raise Http404 from None


def _back(request: HttpRequest, pk: int) -> HttpResponse:
    page = reverse("admin:memory_conversation_change", args=[pk])
    return lead_back(request, otherwise=page)


def _seen(request: HttpRequest) -> State:
    return State.read(request.POST.get("seen", ""))


@act("content")
def rebuild(request: HttpRequest, conversation: Conversation, rights: Rights) -> str:
    form = RebuildForm(request.POST)
    if not form.is_valid():
        raise ActionError(first_error(form))
    seen = _seen(request).memory_version
    cause = form.cleaned_data["cause"]
    return apply.rebuild(request, conversation, cause=cause, seen=seen)


@act("content")
def restore(request: HttpRequest, conversation: Conversation, rights: Rights) -> str:
    version = request.POST.get("version", "")
    if not version.isdecimal() or len(version) > 9:
        raise ActionError(_("Choose a version."))
    seen = _seen(request).memory_version
    return apply.restore(request, conversation, version=int(version), seen=seen)


@act("content")
def review(request: HttpRequest, conversation: Conversation, rights: Rights) -> str:
    form = ReviewForm(request.POST)
    if not form.is_valid():
        raise ActionError(first_error(form))
    note, seen = form.cleaned_data["note"], _seen(request)
    return apply.review(request, conversation, note=note, seen=seen)


@act("export")
def export(
    request: HttpRequest, conversation: Conversation, rights: Rights
) -> HttpResponseBase:
    form = request.POST.get("format", "")
    if form not in exporting.WRITERS:
        raise ActionError(_("Choose a format: JSON or Markdown."))
    return exporting.one(request, conversation, rights, form)
