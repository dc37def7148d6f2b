"""The page parts of links outside of their dialog.

They are the buttons that open the dialog, and a section of the account page.
"""

from django.conf import settings
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.translation import gettext as _

from chatsite import languages
from chatsite.pages.parts import draw_dialog_button
from chatsite.pages.presenters.transcript_pane import ShownMessage
from memory.models import Conversation

from . import services

# Links of a user that the account page lists.
MOST_LINKS = 200


def draw_menu_item(
    conversation: Conversation, message: ShownMessage | None = None
) -> str:
    """Return the button of a menu that opens the dialog.

    In the menu of a message, it is for sharing the conversation up to this message.
    """
    if not _can_have_links(conversation):
        return ""
    url = reverse("share", args=[conversation.uuid])
    if message is None:
        return draw_dialog_button(url, _("Share…"))
    return draw_dialog_button(f"{url}?at={message.seq}", _("Share up to here…"))


def draw_readers(conversation: Conversation) -> str:
    """Return the sentence on other readers of the conversation."""
    if not _can_have_links(conversation):
        return ""
    text = _("Everyone with one of your links can see what it shows.")
    return f"{languages.find_sentence_space()}{text}"


def _can_have_links(conversation: Conversation) -> bool:
    return settings.SHARE_LINKS and not conversation.is_temporary


def draw_account_section(request: HttpRequest) -> str:
    """Return the open links of a user.

    While the site has links turned off, return them only if there are any.
    """
    rows = services.list_shares_of_user(request.user).select_related("conversation")
    shares = services.only_open(rows)[:MOST_LINKS]
    ended = services.list_revoked_by_staff(rows)
    if not (shares or ended or settings.SHARE_LINKS):
        return ""
    values = {"shares": shares, "ended": ended, "are_links_on": settings.SHARE_LINKS}
    return render_to_string("sharing/_account.html", values, request)
