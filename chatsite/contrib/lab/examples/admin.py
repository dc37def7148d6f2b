"""Admin of examples.

Staff find and filter them; those who may read and export also download them.
"""

from collections.abc import Callable, Iterable
from typing import Any

from django.contrib import admin
from django.db.models import F, QuerySet
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from chatsite.review import access_log
from chatsite.review.readonly import ConversationPartAdmin, beginning_of, text_field
from chatsite.review.rights import rights_of
from memory.models import Conversation

from .exporting import send_examples
from .models import Example


def _make_export(form: str, label: Any) -> Callable[..., HttpResponseBase]:
    """Make an action that sends the chosen examples in a format."""

    @admin.action(description=label, permissions=["handing"])
    def export(_: object, request: HttpRequest, rows: QuerySet) -> HttpResponseBase:
        def look(conversations: Iterable[Conversation]) -> None:
            for each in conversations:
                access_log.record_access(request, "export", each, "example")

        chosen: Any = Example.objects.filter(pk__in=rows.order_by().values("pk"))
        return send_examples(chosen, form, look)

    return export


@admin.register(Example)
class ExampleAdmin(ConversationPartAdmin):
    list_display = (
        "updated_at",
        "label",
        "reply_link",
        "correction_shown",
        "author",
        "in_conversation",
        "owner_name",
    )
    list_display_links = ("updated_at",)
    list_filter = ("label", "updated_at")
    actions = ("export_chat", "export_evals")
    texts = Example.TEXTS
    heads = ("correction",)
    select_related = ("conversation__owner", "author")
    fields = (
        ("in_conversation", "reply_link"),
        ("label", "author"),
        "correction_wide",
        ("created_at", "updated_at"),
    )

    correction_shown = beginning_of("correction", _("what should have been said"))
    correction_wide = text_field("correction", _("what should have been said"))

    def get_queryset(self, request: HttpRequest) -> QuerySet:
        # Joining the message itself would read its whole text.
        return super().get_queryset(request).annotate(seq=F("message__seq"))

    def target_of(self, row: Example) -> str:
        return f"example #{row.seq}"

    def has_handing_permission(self, request: HttpRequest) -> bool:
        rights = rights_of(request.user)
        return rights.content and rights.export

    @admin.display(description=_("reply"))
    def reply_link(self, row: Example) -> SafeString:
        url = reverse("review-example", args=[row.conversation_id, row.seq])
        text = gettext("Examples of reply #%(seq)s") % {"seq": row.seq}
        return format_html('<a href="{}">{}</a>', url, text)

    export_chat = _make_export("chat", _("Export as JSONL for training"))
    export_evals = _make_export("evals", _("Export as JSONL for evaluations"))
