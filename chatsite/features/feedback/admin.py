"""Feedback on replies in the admin: each leads to what the model saw at that reply."""

from typing import ClassVar

from django.contrib import admin
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from chatsite.llm import providers
from chatsite.review.filters import ChoiceFilter
from chatsite.review.readonly import ConversationPartAdmin, beginning_of, text_field
from chatsite.turns.requests import with_model
from memory.models import Conversation

from .models import Feedback


class CommentFilter(ChoiceFilter):
    title = _("comment")
    # Not the name of the column: users may not filter by its text.
    parameter_name = "has_comment"
    conditions: ClassVar = {
        "yes": (_("With a comment"), ~Q(comment="")),
        "no": (_("Without"), Q(comment="")),
    }


class BadFeedbackFilter(ChoiceFilter):
    """A filter of conversations by bad feedback."""

    title = _("bad feedback")
    parameter_name = "bad"
    bad = Feedback.objects.filter(conversation=OuterRef("pk"), verdict="bad")
    conditions: ClassVar = {
        "yes": (_("with bad feedback"), Q(Exists(bad.order_by()))),
        "no": (_("without"), ~Q(Exists(bad.order_by()))),
    }


listed = admin.site.get_model_admin(Conversation)
listed.list_filter = (*listed.list_filter, BadFeedbackFilter)


@admin.register(Feedback)
class FeedbackAdmin(ConversationPartAdmin):
    list_display = (
        "updated_at",
        "verdict",
        "reply_link",
        "comment_shown",
        "written_by",
        "in_conversation",
        "owner_name",
    )
    list_display_links = ("updated_at",)
    list_filter = ("verdict", CommentFilter, "updated_at")
    texts = Feedback.TEXTS
    heads = ("comment",)
    fields = (
        ("in_conversation", "reply_link"),
        ("verdict", "written_by"),
        "comment_wide",
        ("created_at", "updated_at"),
    )

    comment_shown = beginning_of("comment", _("comment"))
    comment_wide = text_field("comment", _("comment"))

    def get_queryset(self, request: HttpRequest) -> QuerySet:
        # Not the message itself, whose whole text would be read.
        rows = super().get_queryset(request).annotate(seq=F("message__seq"))
        return with_model(rows, "message")

    def target_of(self, row: Feedback) -> str:
        return f"feedback #{row.seq}"

    @admin.display(description=_("reply"))
    def reply_link(self, row: Feedback) -> SafeString:
        url = reverse("admin:review-request", args=[row.conversation_id, row.seq])
        text = gettext("#%(seq)s: what the model saw") % {"seq": row.seq}
        return format_html('<a href="{}">{}</a>', url, text)

    @admin.display(description=_("model"))
    def written_by(self, row: Feedback) -> str:
        return providers.name_model(row.model) if row.model else str(_("imported"))
