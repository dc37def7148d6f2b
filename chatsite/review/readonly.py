"""Base classes of the admin's pages: read-only lists and pages, and links between them.

Staff who may not read texts get none, and every view of a text is logged.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.contrib.admin.options import IS_POPUP_VAR
from django.contrib.auth import get_user_model
from django.core.paginator import Paginator
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.urls import reverse
from django.utils.functional import cached_property
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memory.models import Conversation

from . import access_log, csv_lists, redaction
from .pages import timeline_link
from .rights import rights_of

SEARCH_HELP = _(
    "The id of a conversation or its first eight characters, the beginning of a user "
    "name, or an e-mail address."
)
MAX_PEOPLE = 100


class ShortPaginator(Paginator):
    """A paginator that counts as far as users turn pages, never a whole table."""

    most = 10_000

    @cached_property
    def count(self) -> int:
        return self.object_list.order_by()[: self.most + 1].count()

    @property
    def is_short(self) -> bool:
        """True if there are more rows than were counted."""
        return self.count > self.most


class ShortListAdmin(admin.ModelAdmin):
    """Lists of any length, that say what they are."""

    show_full_result_count = False
    # Facets would count the whole table for each of their choices.
    show_facets = admin.ShowFacets.NEVER
    paginator = ShortPaginator

    class Media:
        css = {"all": ["css/admin.css"]}

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        # Django's own title is "Select … to view".
        title = capfirst(self.opts.verbose_name_plural)
        return super().changelist_view(
            request, {"title": title, **(extra_context or {})}
        )

    def complete_rows(self, rows: Sequence[Any]) -> Sequence[Any]:
        """Return the rows of a page, or a part of a file, with what their list adds."""
        return rows

    def record_texts(
        self, request: HttpRequest, rows: Iterable[Any], action: str
    ) -> None:
        """Into the access log: whose texts these rows of the list show. Here, none."""

    def has_export_permission(self, request: HttpRequest) -> bool:
        return rights_of(request.user).export

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        # Not in `actions`, which most lists set for themselves.
        actions = super().get_actions(request)
        if self.has_export_permission(request) and IS_POPUP_VAR not in request.GET:
            name = "download_csv"
            actions[name] = self.get_action(name)
        return actions

    @admin.action(description=_("Download as CSV (at most 10,000 rows)"))
    def download_csv(
        self, request: HttpRequest, rows: QuerySet
    ) -> StreamingHttpResponse:
        return csv_lists.send_csv(self, request, rows)

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Any:
        # Django takes an empty _to_field in the address for the name of a column.
        return super().get_object(request, object_id, from_field or None)


class NumbersAdmin(ShortListAdmin):
    """Admin for staff who may see numbers; Django's own permission allows changes."""

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return rights_of(request.user).metadata

    has_module_permission = has_view_permission

    def has_add_permission(self, request: HttpRequest) -> bool:
        return rights_of(request.user).metadata and super().has_add_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        may_see = rights_of(request.user).metadata
        return may_see and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        may_see = rights_of(request.user).metadata
        return may_see and super().has_delete_permission(request, obj)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet, search_term: str
    ) -> tuple[QuerySet, bool]:
        # No search finds a row twice.
        term = search_term.strip()
        return self.search_rows(queryset, term) if term else queryset, False

    def search_rows(self, rows: QuerySet, term: str) -> QuerySet:
        return rows


class ReadOnlyAdmin(NumbersAdmin):
    """Found by people and exact ids; what people wrote can't be searched."""

    list_per_page = 50
    conversation_id_field = ""
    owner_field = ""
    # The columns that hold texts, and those whose beginnings the list shows to staff
    # who may read: see redaction.py.
    texts: tuple[str, ...] = ()
    heads: tuple[str, ...] = ()
    # The relations that are loaded with each row, without their texts.
    select_related: tuple[str, ...] = ()
    # The part of a conversation that a row's page shows, for the access log.
    target = "{0._meta.model_name} {0.pk}"

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    has_change_permission = has_delete_permission = has_add_permission

    @property
    def related_texts(self) -> list[str]:
        return redaction.list_related_texts(self.model, self.select_related)

    def get_queryset(self, request: HttpRequest) -> QuerySet:
        return redaction.mark_readable(
            self.without_temporary(super().get_queryset(request)),
            rights_of(request.user),
            self.texts,
            related=self.related_texts,
            heads=self.heads,
        )

    def without_temporary(self, rows: QuerySet) -> QuerySet:
        """Return the rows of conversations that staff may see.

        Few are temporary, so this is no join.
        """
        if not self.conversation_id_field:
            return rows
        part = self.conversation_id_field.removesuffix("uuid") + "pk"
        hidden = Conversation.objects.filter(temporary_until__isnull=False).order_by()
        return rows.exclude(**{f"{part}__in": hidden.values("pk")})

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Any:
        row = super().get_object(request, object_id, from_field)
        if row is not None and self.texts and redaction.may_read(row):
            row.refresh_from_db(fields=self.texts)
        return row

    def lookup_allowed(
        self, lookup: str, value: Any, request: HttpRequest | None = None
    ) -> bool:
        # Which rows a filter on a text finds would tell the text.
        is_text = lookup.partition("__")[0] in self.texts
        return not is_text and super().lookup_allowed(lookup, value, request)

    def search_rows(self, rows: QuerySet, term: str) -> QuerySet:
        if not self.owner_field:
            return rows
        span = uuid_span(term) if self.conversation_id_field else None
        if span and Conversation.objects.filter(uuid__range=span).exists():
            lookup = {f"{self.conversation_id_field}__range": span}
        else:
            lookup = {f"{self.owner_field}__in": people_found(term)}
        return rows.filter(**lookup)

    def target_of(self, row: Any) -> str:
        return self.target.format(row)

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        response = super().changelist_view(request, extra_context)
        # An action of the list can have answered with a page of its own.
        if listed := getattr(response, "context_data", {}).get("cl"):
            rows = listed.result_list
            self.record_texts(request, rows, access_log.StaffAction.VIEW)
        return response

    def record_texts(
        self, request: HttpRequest, rows: Iterable[Any], action: str
    ) -> None:
        if self.heads and rights_of(request.user).content:
            shown = (conversation_of(row) for row in rows)
            target = f"list {self.opts.model_name}"
            access_log.record_list(request, shown, target, action)

    def find_sections(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        """Return the values that the page's template shows besides the fields."""
        return {}

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        row = kwargs.get("obj")
        if self.texts and rights_of(request.user).content:
            target = self.target_of(row)
            access_log.record_access(
                request, access_log.StaffAction.VIEW, conversation_of(row), target
            )
        # Django's own title is "View …", with the row below it.
        context.update(title=str(row), subtitle=None, is_read_only=True)
        context.update(self.find_sections(request, row))
        return super().render_change_form(request, context, *args, **kwargs)


class ConversationPartAdmin(ReadOnlyAdmin):
    """Rows that belong to a conversation and are found through it."""

    list_select_related = False
    search_fields = ("conversation__owner__username",)
    search_help_text = SEARCH_HELP
    conversation_id_field = "conversation__uuid"
    owner_field = "conversation__owner"
    select_related = ("conversation__owner",)

    def get_queryset(self, request: HttpRequest) -> QuerySet:
        return super().get_queryset(request).select_related(*self.select_related)

    @admin.display(description=_("conversation"))
    def in_conversation(self, row: Any) -> SafeString:
        name = str(row.conversation.uuid)[:8]
        return format_html(
            "{} · {}",
            link_to(row.conversation, name),
            timeline_link(row.conversation_id, gettext("timeline")),
        )

    @admin.display(description=_("owner"))
    def owner_name(self, row: Any) -> str:
        return row.conversation.owner.get_username()

    @admin.display(description=_("error"))
    def error_code(self, row: Any) -> str:
        """Return the error as a code alone: lists do not log an access for it."""
        return redaction.show_error_code(row.error)

    @admin.display(description=_("error"))
    def error_shown(self, row: Any) -> str:
        return redaction.show_error(row)


def conversation_of(row: Any) -> Conversation | None:
    if isinstance(row, Conversation):
        return row
    return getattr(row, "conversation", None)


def people_found(term: str) -> list[int]:
    """Return the ids of users whose name begins so, or whose address this is."""
    people = get_user_model().objects
    if "@" in term and (by_mail := people.filter(email__iexact=term)):
        return list(by_mail.values_list("pk", flat=True)[:MAX_PEOPLE])
    found = people.filter(username__startswith=term)
    return list(found.values_list("pk", flat=True)[:MAX_PEOPLE])


def uuid_span(term: str) -> tuple[UUID, UUID] | None:
    """Return the first and the last id that begin so; None if it cannot begin an id."""
    digits = term.replace("-", "").lower()
    if not 8 <= len(digits) <= 32 or set(digits) - set("0123456789abcdef"):
        return None
    return UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))


def link_to(row: Model, text: str) -> SafeString:
    meta = row._meta
    url = reverse(f"admin:{meta.app_label}_{meta.model_name}_change", args=[row.pk])
    return format_html('<a href="{}">{}</a>', url, text)


def link_to_list(model: type[Model], text: str, **lookups: Any) -> SafeString:
    meta = model._meta
    url = reverse(f"admin:{meta.app_label}_{meta.model_name}_changelist")
    return format_html('<a href="{}?{}">{}</a>', url, urlencode(lookups), text)


def as_text(text: str) -> SafeString:
    return format_html('<pre class="wrap">{}</pre>', text)


def json_of(row: Model, name: str) -> SafeString | str:
    """Return a column of JSON, or its length if it may not be read."""
    if redaction.may_read(row):
        value = getattr(row, name)
        return as_text(json.dumps(value, ensure_ascii=False, indent=2))
    # "[]", "{}" and "null" tell that there is nothing.
    is_empty = (getattr(row, f"{name}_chars", None) or 0) <= len("null")
    return "-" if is_empty else redaction.show_text(row, name)


def format_duration(ms: float | None) -> str:
    if ms is None:
        return "–"
    # Nothing breaks between a number and its unit.
    text = gettext("%(seconds)s s") % {"seconds": f"{ms / 1000:.1f}"}
    return text.replace(" ", "\u00a0")


def beginning_of(name: str, label: Any) -> Callable[..., str]:
    """Make a column of a list: the beginning of the text `name`."""
    return admin.display(description=label)(
        lambda self, row: redaction.show_beginning(row, name)
    )


def text_field(name: str, label: Any) -> Callable[..., SafeString]:
    """Make a field of a page: the text `name`."""
    return admin.display(description=label)(
        lambda self, row: as_text(redaction.show_text(row, name))
    )


def duration_field(name: str, label: Any) -> Callable[..., str]:
    """Make a column: the duration in `name`."""
    return admin.display(description=label, ordering=name)(
        lambda self, row: format_duration(getattr(row, name))
    )


def link_field(
    name: str, label: Any, write: Callable[[Any], str] = lambda row: f"#{row.seq}"
) -> Callable[..., SafeString | str]:
    """Make a column that links to the row in `name`, as `write` calls it."""

    def show(self: object, row: Model) -> SafeString | str:
        related = getattr(row, name)
        return link_to(related, write(related)) if related else "–"

    return admin.display(description=label)(show)


def whole_json(name: str, label: Any) -> Callable[..., SafeString | str]:
    """Make a field of a page: the JSON in `name`."""
    return admin.display(description=label)(lambda self, row: json_of(row, name))
