"""The page parts of calls beside their cards, for users and for staff."""

from collections.abc import Iterable
from typing import Any

from django import forms
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from chatsite.pages.parts import draw_dialog_button
from chatsite.review.redaction import select_readable, show_text
from chatsite.review.rights import Rights
from memory.models import Conversation, Message

from . import registry
from .models import ToolCall


class ToolsField(forms.MultipleChoiceField):
    """Tools by their names. An empty name among them says that they were asked for."""

    def to_python(self, value: Any) -> list[str]:
        return list(filter(None, super().to_python(value)))


def make_start_field() -> ToolsField:
    """Return the field for the tools of a new conversation, on the home page."""
    return ToolsField(
        label=_("Tools"),
        choices=[(each.name, each.title) for each in registry.available().values()],
        initial=registry.defaults(),
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )


def draw_menu_item(conversation: Conversation) -> str:
    """Return the menu item of a conversation that leads to its choice of tools."""
    url = reverse("memory-tools", args=[conversation.uuid])
    return draw_dialog_button(url, _("Tools…"))


def draw_called(
    conversation: Conversation, rights: Rights, messages: Iterable[Message]
) -> dict[int, str]:
    """Return the calls that these messages asked for, with the consents, by message."""
    rows = select_readable(conversation.tool_calls, rights, ToolCall.TEXTS)
    rows = rows.filter(request__in=messages).select_related("answered_by")
    found: dict[int, list[ToolCall]] = {}
    for call in rows.order_by("pk"):
        call.shown_name = call.name if rights.content else show_text(call, "name")
        found.setdefault(call.request_id, []).append(call)
    return {
        pk: render_to_string("tools/_called.html", {"calls": calls})
        for pk, calls in found.items()
    }
