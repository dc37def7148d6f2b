"""The page parts of exports: links in a conversation's menu, and an account section."""

from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html_join
from django.utils.translation import gettext as _

from memory.models import Conversation

from . import left_out as rows_left_out
from .thread_format import list_counts


def draw_menu_items(conversation: Conversation) -> str:
    """Return the download links in the menu of a conversation."""
    links = {
        "conversation-export-md": _("Export as Markdown"),
        "conversation-export-json": _("Export as JSON"),
    }
    found = ((reverse(n, args=[conversation.uuid]), links[n]) for n in links)
    return format_html_join("", '<a href="{}" download>{}</a>', found)


def draw_data_section(request: HttpRequest) -> str:
    left = list_counts(rows_left_out.count_left_of_download(request.user.pk))
    return render_to_string("importing/_account.html", {"left": left}, request)
