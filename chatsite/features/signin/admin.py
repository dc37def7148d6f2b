"""Invitations by staff: the list, and a form that makes one and shows its link once."""

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.html import format_html
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from chatsite.review.readonly import ShortListAdmin

from . import links
from .mail import send_soon
from .models import Invitation, MailedLink

LinkKind = MailedLink.LinkKind


@admin.register(Invitation)
class InvitationAdmin(ShortListAdmin):
    list_display = ("id", "email", "created_at", "expires_at", "used_at", "user")
    list_select_related = ("user",)
    ordering = ("-id",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Invitation]:
        return super().get_queryset(request).filter(kind=LinkKind.INVITATION)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Sequence[str]:
        if obj is None:
            return ("email",) if settings.EMAIL_URL else ()
        return ("email", "made_by", "created_at", "expires_at", "used_at", "user")

    def formfield_for_dbfield(
        self, db_field: Any, request: HttpRequest, **kwargs: Any
    ) -> Any:
        kwargs["help_text"] = _(
            "The link is sent there. Leave it empty to hand the link over yourself."
        )
        return super().formfield_for_dbfield(db_field, request, **kwargs)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def save_model(
        self, request: HttpRequest, obj: Invitation, form: Any, change: bool
    ) -> None:
        """Make the row with its link, which is shown or sent only this once."""
        obj.kind, obj.made_by = LinkKind.INVITATION, request.user
        link = links.make_link(obj, request)
        if obj.email:
            hours = {"link": link, "days": links.HOURS[LinkKind.INVITATION] // 24}
            subject = "Windowpane: " + gettext("An invitation")
            send_soon(obj.email, subject, "signin/mail/invitation.txt", hours)
            text = gettext("The invitation is on its way to %(email)s.")
            self.message_user(request, text % {"email": obj.email})
        else:
            said = gettext("Copy the link now, it is not shown again:")
            text = format_html("{} <code>{}</code>", said, link)
            self.message_user(request, text, messages.WARNING)

    def response_add(
        self, request: HttpRequest, obj: Any, post_url_continue: str | None = None
    ) -> HttpResponse:
        # Django's own sentence would stand beside the one with the link.
        return redirect("admin:signin_invitation_changelist")
