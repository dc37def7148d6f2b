"""The review queue in the admin: what to look at, who does, and what came of it."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.auth import get_user_model
from django.db import connection, transaction
from django.db.models import Case, Exists, OuterRef, Q, QuerySet, Value, When
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from chatsite import plugins
from chatsite.review import access_log
from chatsite.review.actions.views import MAX_AT_ONCE
from chatsite.review.readonly import (
    ConversationPartAdmin,
    beginning_of,
    link_to,
    text_field,
)
from chatsite.review.rights import rights_of

from .models import QueueItem
from .services import refresh_queue

ACTION = "queue"
EDITED = ("state", "assignee", "note")


class QueueItemForm(forms.ModelForm):
    # As the item was when the form was drawn.
    seen = forms.CharField(widget=forms.HiddenInput)

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.initial["seen"] = self.instance.changed_at.isoformat()

    def clean(self) -> dict[str, Any] | None:
        if self.cleaned_data.get("seen") != self.initial["seen"]:
            text = _("Someone has changed this item meanwhile. Open the page again.")
            raise forms.ValidationError(text)
        return super().clean()


class AssigneeFilter(admin.SimpleListFilter):
    title = _("assigned to")
    parameter_name = "assigned"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("me", _("Me")), ("others", _("Others")), ("none", _("Not assigned"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        match self.value():
            case "me":
                return queryset.filter(assignee=request.user.pk)
            case "others":
                rows = queryset.filter(assignee__isnull=False)
                return rows.exclude(assignee=request.user.pk)
            case "none":
                return queryset.filter(assignee=None)
        return queryset


@admin.register(QueueItem)
class QueueItemAdmin(ConversationPartAdmin):
    form = QueueItemForm
    list_display = (
        "item_link",
        "looked_at",
        "state",
        "assigned_to",
        "note_shown",
        "found_at",
        "in_conversation",
        "owner_name",
    )
    list_display_links = None
    list_filter = ("state", "kind", AssigneeFilter)
    sortable_by = ()
    texts = QueueItem.TEXTS
    heads = ("note",)
    select_related = ("conversation__owner", "assignee")
    actions = ("assign_to_me", "mark_finished")

    note_shown = beginning_of("note", _("note"))
    note_wide = text_field("note", _("note"))

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return the right to mark a conversation as reviewed."""
        return rights_of(request.user).content

    def get_queryset(self, request: HttpRequest) -> QuerySet[QueueItem]:
        # Kinds of an app that was taken out are not shown.
        sources = plugins.sources[plugins.ReviewSource]
        rows = super().get_queryset(request).filter(kind__in=sources)
        reasons = [
            When(kind=kind, then=Exists(source.find().filter(pk=OuterRef("source"))))
            for kind, source in sources.items()
        ]
        return rows.annotate(has_reason=Case(*reasons, default=Value(value=False)))

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Sequence[Any]:
        places = ("in_conversation", "kind", "looked_at")
        times = ("found_at", "changed_at")
        if self.has_change_permission(request):
            return (places, *EDITED, times, "seen")
        return (places, ("state", "assignee"), "note_wide", times)

    def get_readonly_fields(
        self, request: HttpRequest, obj: Any = None
    ) -> Sequence[str]:
        fixed = ("in_conversation", "kind", "looked_at", "found_at", "changed_at")
        return fixed if self.has_change_permission(request) else (*fixed, "note_wide")

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> QueueItem | None:
        is_change = request.method == "POST" and connection.in_atomic_block
        if is_change and object_id.isdecimal():
            # A second user who saves at the same time waits, and sees the change.
            rows = QueueItem.objects.filter(pk=int(object_id)).order_by()
            rows.select_for_update().values_list("pk").first()
        return super().get_object(request, object_id, from_field)

    def formfield_for_dbfield(
        self, db_field: Any, request: HttpRequest, **options: Any
    ) -> Any:
        if db_field.name == "assignee":
            # Without Django's signs for changing and deleting accounts.
            staff = get_user_model().objects.filter(is_staff=True, is_active=True)
            return db_field.formfield(queryset=staff.order_by("username"))
        return super().formfield_for_dbfield(db_field, request, **options)

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if request.method == "GET" and self.has_view_permission(request):
            refresh_queue()
        return super().changelist_view(request, extra_context)

    def save_model(
        self, request: HttpRequest, obj: QueueItem, form: Any, change: bool
    ) -> None:
        target = self.target_of(obj)
        access_log.record_access(request, ACTION, obj.conversation, target)
        if names := [name for name in EDITED if name in form.changed_data]:
            obj.save(update_fields=[*names, "changed_at"])

    @admin.display(description=_("kind"))
    def item_link(self, row: QueueItem) -> SafeString:
        return link_to(row, row.get_kind_display())

    @admin.display(description=_("look at"))
    def looked_at(self, row: QueueItem) -> SafeString:
        source = plugins.sources[plugins.ReviewSource][row.kind]
        url = source.address(row.conversation_id, row.number, row.source)
        link = format_html('<a href="{}">{}</a>', url, source.describe(row.number))
        if row.has_reason:
            return link
        return format_html("{} ({})", link, gettext("no longer applies"))

    @admin.display(description=_("assigned to"))
    def assigned_to(self, row: QueueItem) -> str:
        return row.assignee.get_username() if row.assignee else "–"

    @admin.action(description=_("Assign to me"), permissions=["change"])
    def assign_to_me(self, request: HttpRequest, rows: QuerySet[QueueItem]) -> None:
        # Someone else may have been faster since the list was drawn.
        free = Q(assignee=None) | Q(assignee=request.user.pk)
        values = {"assignee": request.user, "state": QueueItem.State.WORK}
        self._change(request, rows, free, **values)

    @admin.action(description=_("Mark as finished"), permissions=["change"])
    def mark_finished(self, request: HttpRequest, rows: QuerySet[QueueItem]) -> None:
        self._change(request, rows, Q(), state=QueueItem.State.DONE)

    def _change(
        self, request: HttpRequest, rows: QuerySet[QueueItem], which: Q, **values: Any
    ) -> None:
        chosen = list(rows.values_list("pk", flat=True)[: MAX_AT_ONCE + 1])
        if len(chosen) > MAX_AT_ONCE:
            text = gettext("Choose at most %(count)s items at once.")
            self.message_user(request, text % {"count": MAX_AT_ONCE}, messages.ERROR)
            return
        with transaction.atomic():
            items = QueueItem.objects.filter(which, pk__in=chosen).order_by("pk")
            locked = items.select_for_update(of=("self",)).select_related(
                "conversation"
            )
            found = list(locked.defer(*self.texts, *self.related_texts))
            for row in found:
                self._set(request, row, values)
        done = len(found)
        text = ngettext("%(count)s item: done.", "%(count)s items: done.", done)
        self.message_user(request, text % {"count": done}, messages.SUCCESS)
        if left := len(chosen) - done:
            text = ngettext(
                "%(count)s item was left out: someone else has it, or it is gone.",
                "%(count)s items were left out: others have them, or they are gone.",
                left,
            )
            self.message_user(request, text % {"count": left}, messages.WARNING)

    def _set(self, request: HttpRequest, row: QueueItem, values: Any) -> None:
        access_log.record_access(request, ACTION, row.conversation, self.target_of(row))
        for name, value in values.items():
            setattr(row, name, value)
        row.save(update_fields=[*values, "changed_at"])
        self.log_change(request, row, [{"changed": {"fields": [*values]}}])
