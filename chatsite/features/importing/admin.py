"""Imports and exports in the admin: files for staff, and a filter."""

from typing import ClassVar

from django.contrib import admin
from django.contrib.admin import ModelAdmin
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _

from chatsite.review.filters import ChoiceFilter
from chatsite.review.rights import rights_of
from memory.models import Conversation

from .exporting import for_staff
from .files.reading import SITES

# Of what was imported, by the first word of its source.
STARTS = [("imported_from__startswith", f"{site}:") for site in ("windowpane", *SITES)]


@admin.action(description=_("Export as JSON"), permissions=["export"])
def export_json(
    conversations: ModelAdmin, request: HttpRequest, queryset: QuerySet
) -> HttpResponse:
    ids = list(queryset.order_by("pk").values_list("pk", flat=True))
    return for_staff.send_many_as_json(request, ids, rights_of(request.user))


@admin.action(
    description=_("Export as Markdown and JSON (zip)"), permissions=["export"]
)
def export_zip(
    conversations: ModelAdmin, request: HttpRequest, queryset: QuerySet
) -> HttpResponse:
    ids = list(queryset.order_by("pk").values_list("pk", flat=True))
    return for_staff.send_many_as_zip(request, ids, rights_of(request.user))


class ImportedFilter(ChoiceFilter):
    title = _("imported")
    parameter_name = "imported"
    conditions: ClassVar = {
        "yes": (_("imported"), Q(*STARTS, _connector=Q.OR)),
        "no": (_("started here"), Q(imported_from=None)),
    }


listed = admin.site.get_model_admin(Conversation)
listed.actions = (export_json, export_zip, *listed.actions)
listed.list_filter = (*listed.list_filter, ImportedFilter)
