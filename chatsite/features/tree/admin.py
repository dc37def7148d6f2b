"""Branches in the admin: which conversations are shown as one. They have no texts."""

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from chatsite.review.readonly import ConversationPartAdmin, link_to, link_to_list

from .models import Branch


@admin.register(Branch)
class BranchAdmin(ConversationPartAdmin):
    list_display = (
        "created_at",
        "parts_at",
        "in_conversation",
        "shown_with",
        "is_listed",
        "owner_name",
    )
    list_display_links = ("created_at",)
    list_filter = ("created_at",)
    select_related = ("conversation__owner", "parent__conversation")
    fields = (
        ("in_conversation", "owner_name"),
        ("parts_at", "shown_with", "is_listed"),
        "created_at",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet:
        # Of one that is gone, only where others part from it is left.
        return super().get_queryset(request).exclude(conversation=None)

    @admin.display(description=_("parts at"))
    def parts_at(self, row: Branch) -> SafeString | str:
        if row.parent is None:
            return "–"
        if row.parent.conversation is None:
            return f"#{row.seq}"
        return link_to(row.parent.conversation, f"#{row.seq}")

    @admin.display(description=_("shown as one"))
    def shown_with(self, row: Branch) -> SafeString:
        return link_to_list(Branch, gettext("all branches"), tree=row.tree)

    @admin.display(description=_("in the list"), boolean=True)
    def is_listed(self, row: Branch) -> bool:
        return not row.is_folded
