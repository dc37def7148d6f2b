"""Rules in the admin: what people want kept for a whole conversation."""

from django.contrib import admin
from django.db.models import F, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from chatsite.review import redaction
from chatsite.review.readonly import ConversationPartAdmin
from chatsite.review.rights import describe_hidden

from .models import Rule
from .store import with_rule_words


@admin.register(Rule)
class RuleAdmin(ConversationPartAdmin):
    list_display = (
        "pk",
        "in_conversation",
        "owner_name",
        "message_seq",
        "kind",
        "state",
        "created_at",
    )
    list_filter = ("state", "kind", "created_at")
    ordering = ("-id",)
    texts = Rule.TEXTS
    fields = (
        "in_conversation",
        ("message_seq", "kind", "state"),
        "rule_words",
        "created_at",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet:
        # Not the message itself, whose whole text would be read.
        return super().get_queryset(request).annotate(seq=F("message__seq"))

    def target_of(self, row: Rule) -> str:
        return f"rule {row.pk}"

    @admin.display(description=_("message"))
    def message_seq(self, row: Rule) -> str:
        return f"#{row.seq}" if row.seq else "-"

    @admin.display(description=_("text"))
    def rule_words(self, row: Rule) -> str:
        if not redaction.may_read(row):
            return describe_hidden(row.end - row.start) or redaction.show_text(
                row, "text"
            )
        rows = with_rule_words(Rule.objects.filter(pk=row.pk))
        return rows.values_list("words", flat=True).get() or ""
