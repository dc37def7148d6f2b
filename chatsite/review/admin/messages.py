"""Messages in the admin: the transcript as it was written."""

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from memory.models import Message

from .. import redaction
from ..filters import SetFilter
from ..readonly import ConversationPartAdmin, beginning_of, text_field, whole_json


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
        ("pinned_at", SetFilter),
        ("excluded_at", SetFilter),
        ("superseded_at", SetFilter),
        "created_at",
    )
    ordering = ("-id",)
    texts = redaction.MESSAGE
    target = "message #{0.seq}"
    heads = ("text",)
    fields = (
        ("in_conversation", "seq"),
        ("role", "tokens"),
        "wide_text",
        "wide_sent_text",
        "wide_tool_calls",
        ("tool_call", "client_id_shown"),
        ("pinned_at", "excluded_at", "superseded_at"),
        ("deleted_at", "imported_at"),
        "created_at",
    )

    beginning = beginning_of("text", _("text"))
    wide_text = text_field("text", _("text"))
    wide_sent_text = text_field("sent_text", _("sent to a model instead"))
    wide_tool_calls = whole_json("tool_calls", _("tool calls"))

    # The author of the message, or the model, chose these two.
    @admin.display(description=_("answers the tool call"))
    def tool_call(self, row: Message) -> str:
        return redaction.show_text(row, "tool_call_id") or "-"

    @admin.display(description=_("client id"))
    def client_id_shown(self, row: Message) -> str:
        return redaction.show_text(row, "client_id") or "-"
