"""Links to conversations in the admin: who has shared what, for how long, and how often
it was opened. The link itself is shown to no one of the staff.
"""

from django.contrib import admin
from django.contrib.admin import EmptyFieldListFilter
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from chatsite.review.readonly import ConversationPartAdmin

from .models import Share


@admin.register(Share)
class ShareAdmin(ConversationPartAdmin):
    list_display = (
        *("id", "in_conversation", "owner_name", "up_to", "with_view", "created_at"),
        *("expires_at", "revoked_at", "opens", "last_opened_at"),
    )
    list_filter = (
        *("with_view", ("revoked_at", EmptyFieldListFilter), "created_at"),
        "expires_at",
    )
    ordering = ("-id",)
    fields = (
        ("in_conversation", "owner_name"),
        ("up_to", "with_view"),
        ("created_at", "expires_at", "revoked_at"),
        ("opens", "last_opened_at"),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Share]:
        return super().get_queryset(request).defer("token")

    def lookup_allowed(
        self, lookup: str, value: object, request: HttpRequest | None = None
    ) -> bool:
        # Which rows a filter on it finds would tell the link letter by letter.
        is_token = lookup.partition("__")[0] == "token"
        return not is_token and super().lookup_allowed(lookup, value, request)

    @admin.display(description=_("up to"))
    def up_to(self, row: Share) -> str:
        return f"#{row.last_seq}"
