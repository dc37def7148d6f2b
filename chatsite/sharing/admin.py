"""Links to conversations in the admin: who has shared what, for how long, and how often
it was opened. The link itself is shown to no one of the staff.
"""

from typing import ClassVar

from django.contrib import admin
from django.contrib.admin import EmptyFieldListFilter
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from chatsite.review.filters import ChoiceFilter
from chatsite.review.readonly import ConversationPartAdmin
from memory.models import Conversation

from .models import Share
from .services import only_open


class SharedFilter(ChoiceFilter):
    """Of conversations."""

    title = _("shared")
    parameter_name = "shared"
    rows = Share.objects.filter(conversation=OuterRef("pk"))
    conditions: ClassVar = {
        "now": (_("with an open link"), Q(Exists(only_open(rows)))),
        "once": (_("with any link"), Q(Exists(rows))),
        "no": (_("without a link"), ~Q(Exists(rows))),
    }


listed = admin.site.get_model_admin(Conversation)
listed.list_filter = (*listed.list_filter, SharedFilter)


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
