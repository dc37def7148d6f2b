"""Links to conversations in the admin: their owner, their duration and their visits.

The link itself is not shown to staff. Those who have the permission revoke it, for a
reason that its owner reads.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import flatten
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from chatsite.review import access_log
from chatsite.review.filters import ChoiceFilter, SetFilter
from chatsite.review.readonly import ConversationPartAdmin
from chatsite.review.rights import rights_of
from memory.models import Conversation

from .models import Share
from .services import only_open, revoke_as_staff

# In the access log.
ACTION = "revoke"
REVOKE = "sharing.revoke_links"


class RevokeForm(forms.ModelForm):
    """Saving it revokes the link."""

    reason = forms.CharField(
        label=_("Revoke it, because"),
        max_length=200,
        widget=forms.TextInput(attrs={"class": "vTextField"}),
        help_text=_(
            "Saving revokes the link for good. Its owner reads this reason, and that "
            "it was an administrator: don't quote message text."
        ),
    )


class SharedFilter(ChoiceFilter):
    """A filter of conversations by their links."""

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
    list_filter = ("with_view", ("revoked_at", SetFilter), "created_at", "expires_at")
    ordering = ("-id",)
    fields = (
        ("in_conversation", "owner_name"),
        ("up_to", "with_view"),
        ("created_at", "expires_at", "revoked_at"),
        ("opens", "last_opened_at"),
        "reason",
    )
    form = RevokeForm

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return whether the user may revoke this link, which must be open."""
        may = rights_of(request.user).metadata and request.user.has_perm(REVOKE)
        return may and (
            obj is None or (obj.revoked_at is None and obj.expires_at > timezone.now())
        )

    def get_readonly_fields(
        self, request: HttpRequest, obj: Any = None
    ) -> Sequence[str]:
        shown = flatten(self.fields)
        if self.has_change_permission(request, obj):
            shown.remove("reason")
        return shown

    def save_model(
        self, request: HttpRequest, obj: Share, form: Any, change: bool
    ) -> None:
        if revoke_as_staff(obj, form.cleaned_data["reason"]):
            target = self.target_of(obj)
            access_log.record_access(request, ACTION, obj.conversation, target)
        else:
            text = _("The link has expired in the meantime.")
            self.message_user(request, text, messages.WARNING)

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
