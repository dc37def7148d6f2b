"""Files for staff from the list of conversations in the admin."""

from django.contrib import admin
from django.contrib.admin import ModelAdmin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _

from chatsite.review.rights import rights_of
from memory.models import Conversation

from .exporting import for_staff


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


listed = admin.site.get_model_admin(Conversation)
listed.actions = (export_json, export_zip, *listed.actions)
