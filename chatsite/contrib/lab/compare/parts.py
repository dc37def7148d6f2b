"""Parts of comparisons on other pages.

Links to the page of comparisons, and a section of the staff inspector.
"""

from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _

from chatsite.pages.presenters.transcript_pane import ShownMessage
from memory.models import Conversation

from ..stored_requests import UNREADABLE
from .presenter import present_figures
from .sent_requests import read_compared


def draw_compare_item(conversation: Conversation, message: ShownMessage) -> str:
    """Return a link for the menu of a reply, if its request is known."""
    if message.role != "assistant" or not message.has_request:
        return ""
    return _draw_link(conversation, message.seq, "item")


def draw_beside_sent(conversation: Conversation, seq: int) -> str:
    """Return a link for the right pane when it shows the request of a reply."""
    return format_html(" · {}", _draw_link(conversation, seq))


def draw_in_conversation_menu(conversation: Conversation) -> str:
    """Return a link to the costs of the turns."""
    url = reverse("conversation-costs", args=[conversation.uuid])
    return format_html('<a href="{}">{}</a>', url, _("Costs of the turns"))


def _draw_link(conversation: Conversation, reply: int, style: str = "") -> str:
    url = reverse("conversation-compare", args=[conversation.uuid])
    template = '<a class="{}" href="{}?reply={}">{}</a>'
    text = _("Compare with the reply before")
    return format_html(template, style, url, reply, text)


def draw_inspected_comparison(conversation: Conversation, seq: int) -> str:
    """Explain to staff how the request of reply `seq` differs from the one before.

    Contains figures, never texts.
    """
    try:
        figures = present_figures(read_compared(conversation, seq))
    except UNREADABLE:
        # An old import can have references of any shape: the inspector reports that.
        return ""
    return render_to_string("compare/_inspected.html", {"shown": figures})
