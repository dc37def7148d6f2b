"""What people see of exports in the menu of a conversation."""

from django.urls import reverse
from django.utils.html import format_html_join
from django.utils.translation import gettext as _

from memory.models import Conversation


def draw_menu_items(conversation: Conversation) -> str:
    """The links in the menu of a conversation that download it."""
    links = {
        "conversation-export-md": _("Export as Markdown"),
        "conversation-export-json": _("Export as JSON"),
    }
    found = ((reverse(n, args=[conversation.uuid]), links[n]) for n in links)
    return format_html_join("", '<a href="{}" download>{}</a>', found)
