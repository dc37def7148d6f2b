"""What people and staff see of exports: links in menus, a section of the account page,
and buttons of staff.
"""

from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html_join
from django.utils.translation import gettext as _

from chatsite.review.rights import Rights
from memory.models import Conversation


def draw_menu_items(conversation: Conversation) -> str:
    """The links in the menu of a conversation that download it."""
    links = {
        "conversation-export-md": _("Export as Markdown"),
        "conversation-export-json": _("Export as JSON"),
    }
    found = ((reverse(n, args=[conversation.uuid]), links[n]) for n in links)
    return format_html_join("", '<a href="{}" download>{}</a>', found)


def draw_data_section(request: HttpRequest) -> str:
    return render_to_string("importing/_account.html", request=request)


def draw_staff_buttons(rights: Rights) -> str:
    if not rights.export:
        return ""
    return render_to_string("importing/_staff_buttons.html", {"rights": rights})
