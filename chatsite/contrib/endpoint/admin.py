"""API keys in the admin: their owners, validity and last use.

The key itself is never shown.
"""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from chatsite.review.filters import SetFilter
from chatsite.review.readonly import ReadOnlyAdmin

from .models import ApiKey


@admin.register(ApiKey)
class ApiKeyAdmin(ReadOnlyAdmin):
    owner_field = "owner"
    list_display = (
        *("id", "owner_name", "name", "mode", "tokens_per_day", "created_at"),
        *("expires_at", "revoked_at", "last_used_at"),
    )
    list_filter = (
        *("mode", ("revoked_at", SetFilter), "created_at", "expires_at"),
        "last_used_at",
    )
    ordering = ("-id",)
    fields = (
        ("owner_name", "name", "hint"),
        ("kind", "mode", "scopes"),
        ("models_allowed", "tokens_per_day", "tokens_used"),
        ("created_at", "expires_at"),
        ("revoked_at", "last_used_at"),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[ApiKey]:
        return super().get_queryset(request).select_related("owner").defer("sha256")

    def lookup_allowed(
        self, lookup: str, value: Any, request: HttpRequest | None = None
    ) -> bool:
        is_hash = lookup.partition("__")[0] == "sha256"
        return not is_hash and super().lookup_allowed(lookup, value, request)

    @admin.display(description=_("user"), ordering="owner__username")
    def owner_name(self, row: ApiKey) -> str:
        return row.owner.get_username()
