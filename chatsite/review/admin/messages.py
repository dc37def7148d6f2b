"""Messages in the admin: the transcript as it was written."""

from django.contrib import admin
from django.contrib.admin import DateFieldListFilter, EmptyFieldListFilter
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from memory.models import Message

from .. import redaction
from ..readonly import ConversationPartAdmin, as_text, json_of


@admin.register(Message)
class MessageAdmin(ConversationPartAdmin):
    list_display = (
        "seq",
        "in_conversation",
        "owner_name",
        "role",
        "beginning",
        "tokens",
        "pinned_at",
        "excluded_at",
        "superseded_at",
        "created_at",
    )
    list_filter = (
        "role",
        ("pinned_at", EmptyFieldListFilter),
        ("excluded_at", EmptyFieldListFilter),
        ("superseded_at", EmptyFieldListFilter),
        ("created_at", DateFieldListFilter),
    )
    ordering = ("-id",)
    texts = redaction.MESSAGE
    heads = ("text",)
    fields = (
        ("in_conversation", "seq"),
        ("role", "tokens"),
        "wide_text",
        "wide_tool_calls",
        ("tool_call", "client"),
        ("pinned_at", "excluded_at", "superseded_at"),
        ("deleted_at", "imported_at"),
        "created_at",
    )

    def target_of(self, row: Message) -> str:
        return f"message #{row.seq}"

    @admin.display(description=_("text"))
    def beginning(self, row: Message) -> str:
        return redaction.beginning(row, "text")

    @admin.display(description=_("text"))
    def wide_text(self, row: Message) -> SafeString:
        return as_text(redaction.read(row, "text"))

    @admin.display(description=_("tool calls"))
    def wide_tool_calls(self, row: Message) -> SafeString | str:
        return json_of(row, "tool_calls")

    # Whoever wrote the message, or the model, chose these two.
    @admin.display(description=_("answers the tool call"))
    def tool_call(self, row: Message) -> str:
        return redaction.read(row, "tool_call_id") or "-"

    @admin.display(description=_("client id"))
    def client(self, row: Message) -> str:
        return redaction.read(row, "client_id") or "-"
