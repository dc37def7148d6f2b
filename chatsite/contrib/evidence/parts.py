"""The links to downloads in the menus of a conversation and of a reply."""

from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _

from chatsite.pages.presenters.transcript_pane import ShownMessage
from memory.models import Conversation


def draw_evidence_link(conversation: Conversation) -> str:
    return _draw_download(conversation, "", _("Download evidence"))


def draw_reply_link(conversation: Conversation, message: ShownMessage) -> str:
    """Return the link in the menu of a reply, if its request is known."""
    if message.role != "assistant" or not message.has_request:
        return ""
    return _draw_download(conversation, f"?reply={message.seq}", _("Download evidence"))


def _draw_download(conversation: Conversation, query: str, text: str) -> str:
    url = reverse("conversation-evidence-zip", args=[conversation.uuid])
    link = '<a class="item" href="{}{}" download>{}</a>'
    return format_html(link, url, query, text)
