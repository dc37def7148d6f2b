"""The URLs of the staff's actions: a POST, or a page that asks first.

The page is for one conversation or for those chosen in the list.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import path, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from chatsite.accounts.access import lead_back
from memory.actions import ActionError, EditChoice, EditedError
from memory.models import Conversation

from .. import redaction
from ..models import Tombstone
from ..pages import check_rights, render_admin, review_page
from ..rights import Rights
from . import erasing, services
from .forms import ActionForm, PurgeForm, RebuildForm, ReviewForm, code_of, first_error
from .services import State

MAX_AT_ONCE = 50
# Of the form of *Restore*, beside the choice.
SENT_AGAIN = ("uuid", "seen", "next", "version")

View = Callable[[HttpRequest, Conversation, Rights], HttpResponseBase | str]


@dataclass(frozen=True, slots=True)
class BulkAction:
    """An action that asks first: the right it takes, its form, what it does to each."""

    need: str
    title: str
    button: str
    form: type[ActionForm]
    perform: Callable[..., str]


BULK_ACTIONS = {
    "rebuild": BulkAction(
        "content",
        gettext_lazy("Summarise again from scratch"),
        gettext_lazy("Rebuild"),
        RebuildForm,
        services.rebuild_as_staff,
    ),
    "review": BulkAction(
        "content",
        gettext_lazy("Mark reviewed"),
        gettext_lazy("Mark reviewed"),
        ReviewForm,
        services.mark_reviewed,
    ),
    "purge": BulkAction(
        "purge",
        gettext_lazy("Erase permanently"),
        gettext_lazy("Erase permanently"),
        PurgeForm,
        services.purge_conversation,
    ),
}


def post_action(*needs: str) -> Callable[[View], Callable[..., HttpResponse]]:
    """Make a POST view that does something and redirects to the page it came from.

    A message there says what was done, or why not.
    """

    def decorate(view: View) -> Callable[..., HttpResponse]:
        @require_POST
        @wraps(view)
        def perform(request: HttpRequest, pk: int) -> HttpResponse:
            rights = check_rights(request, *needs)
            rows = redaction.select_lasting().select_related("owner")
            try:
                done = view(request, rows.get(pk=pk), rights)
            except Conversation.DoesNotExist:
                return _answer_gone(request)
            except ActionError as error:
                messages.error(request, str(error))
            else:
                if isinstance(done, HttpResponseBase):
                    return done
                messages.success(request, done)
            page = reverse("admin:memory_conversation_change", args=[pk])
            return lead_back(request, otherwise=page)

        perform.needs = needs
        return admin.site.admin_view(never_cache(perform))

    return decorate


def _posted_uuids(request: HttpRequest) -> list[UUID]:
    """Return the conversations of the form, by the ids that outlive their rows."""
    try:
        return [UUID(text) for text in request.POST.getlist("uuid")]
    except ValueError:
        raise Http404 from None


def _answer_gone(request: HttpRequest) -> HttpResponse:
    """Another one of the staff was faster; a tombstone says who."""
    text = _("This conversation no longer exists.")
    uuids = _posted_uuids(request)
    if stone := Tombstone.objects.filter(conversation__in=uuids).first():
        text = _("%(user)s has already erased this conversation, so nothing was done.")
        text %= {"user": stone.username}
    messages.warning(request, text)
    return redirect("admin:memory_conversation_changelist")


def _read_form(request: HttpRequest, form_class: type[ActionForm]) -> dict[str, Any]:
    """Return the form's values and the state the reviewer saw; raise ActionError."""
    form = form_class(request.POST)
    if not form.is_valid():
        raise ActionError(first_error(form))
    return {**form.cleaned_data, "seen": State.parse_text(request.POST.get("seen", ""))}


def _make_post(action: BulkAction) -> Callable[..., HttpResponse]:
    """Make the view of an action for one conversation, whose page has its form."""

    @post_action(action.need)
    def post(request: HttpRequest, conversation: Conversation, rights: Rights) -> str:
        values = _read_form(request, action.form)
        return action.perform(request, conversation, **values)

    return post


post_rebuild = _make_post(BULK_ACTIONS["rebuild"])
post_review = _make_post(BULK_ACTIONS["review"])


@post_action("content")
def post_restore(
    request: HttpRequest, conversation: Conversation, rights: Rights
) -> HttpResponse | str:
    version = request.POST.get("version", "")
    if not version.isdecimal() or len(version) > 9:
        raise ActionError(_("Choose a version."))
    seen = State.parse_text(request.POST.get("seen", ""))
    edited = (
        EditChoice.WRITE if request.POST.get("edited") == "write" else EditChoice.ASK
    )
    try:
        return services.restore_as_staff(
            request, conversation, version=int(version), seen=seen, edited=edited
        )
    except EditedError as error:
        return _ask_about_edited(request, conversation, int(version), str(error))


def _ask_about_edited(
    request: HttpRequest, conversation: Conversation, version: int, text: str
) -> HttpResponse:
    """Return the page that asks whether edited summaries may go; nothing was done."""
    sent = {name: value for name, value in request.POST.items() if name in SENT_AGAIN}
    return render_admin(
        request,
        "admin/review/ask_restore.html",
        Conversation,
        _("Nothing was changed yet"),
        status=409,
        conversation=conversation,
        text=text,
        version=version,
        sent=sent,
    )


def show_confirmation(
    request: HttpRequest,
    name: str,
    rows: Sequence[Conversation],
    form: ActionForm | None = None,
) -> HttpResponse:
    """Render the page before the action, with the errors of its form."""
    action, uuids = BULK_ACTIONS[name], [row.uuid for row in rows]
    shown = form or action.form(code=code_of(uuids))
    values = {"name": name, "action": action, "rows": rows, "form": shown}
    if name == "purge":
        same = ((row, Conversation.objects.filter(pk=row.pk)) for row in rows)
        values["counted"] = [(row, erasing.count_rows(each)) for row, each in same]
        values["copies"] = sum(erasing.find_copies(row).count() for row in rows)
        values["code"] = code_of(uuids)
    template = "admin/review/confirm_action.html"
    values["status"] = 422 if form else 200
    return render_admin(request, template, Conversation, action.title, **values)


def ask_about_chosen(
    request: HttpRequest, name: str, queryset: QuerySet
) -> HttpResponse | None:
    """Render the page before an action of the list; None: back to it with a message."""
    rows = list(queryset.select_related("owner").order_by("pk")[: MAX_AT_ONCE + 1])
    if len(rows) <= MAX_AT_ONCE:
        return show_confirmation(request, name, rows)
    text = _("Choose at most %(limit)s conversations at a time.")
    messages.error(request, text % {"limit": MAX_AT_ONCE})
    return None


@review_page("purge")
def purge_page(
    request: HttpRequest, conversation: Conversation, rights: Rights
) -> HttpResponse:
    return show_confirmation(request, "purge", [conversation])


@require_POST
def _perform_bulk(request: HttpRequest, name: str) -> HttpResponse:
    if name not in BULK_ACTIONS:
        raise Http404
    action = BULK_ACTIONS[name]
    check_rights(request, action.need)
    uuids = _posted_uuids(request)
    rows = redaction.select_lasting().select_related("owner").filter(uuid__in=uuids)
    rows = list(rows.order_by("pk")[:MAX_AT_ONCE])
    if not rows:
        return _answer_gone(request)
    form = action.form(request.POST, code=code_of(uuids))
    if not form.is_valid():
        return show_confirmation(request, name, rows, form)
    values = {key: form.cleaned_data[key] for key in form.fields if key != "code"}
    _perform_each(request, action, rows, values)
    return redirect("admin:memory_conversation_changelist")


def _perform_each(
    request: HttpRequest,
    action: BulkAction,
    rows: list[Conversation],
    values: dict[str, str],
) -> None:
    done = []
    for row in rows:
        try:
            done.append(action.perform(request, row, **values))
        except ActionError as error:
            messages.error(request, f"{row}: {error}")
        except Conversation.DoesNotExist:
            messages.warning(request, _("%(name)s no longer exists.") % {"name": row})
    if len(done) == 1:
        messages.success(request, done[0])
    elif done:
        text = ngettext(
            "%(count)s conversation: done.", "%(count)s conversations: done.", len(done)
        )
        messages.success(request, text % {"count": len(done)})


perform_bulk = admin.site.admin_view(never_cache(_perform_bulk))

urlpatterns = [
    path("<int:pk>/rebuild/", post_rebuild, name="review-rebuild"),
    path("<int:pk>/restore/", post_restore, name="review-restore"),
    path("<int:pk>/review/", post_review, name="review-review"),
    path("<int:pk>/purge/", purge_page, name="review-purge"),
    path("acts/<slug:name>/", perform_bulk, name="review-bulk"),
]
