"""Parts of examples on other pages.

An item in the menu of a reply, and a section of the staff inspector.
"""

from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.translation import gettext as _

from chatsite.pages.parts import draw_dialog_button
from chatsite.pages.presenters.transcript_pane import ShownMessage
from chatsite.review.rights import Rights
from memory.models import Conversation

from .models import Example


def draw_mark_item(conversation: Conversation, message: ShownMessage) -> str:
    if conversation.is_temporary or not message.is_reply:
        return ""
    url = reverse("conversation-example", args=[conversation.uuid, message.seq])
    return draw_dialog_button(url, _("Mark as an example…"))


def draw_inspected_examples(
    conversation: Conversation, rights: Rights, seq: int
) -> str:
    """List the kinds of examples that reply `seq` is, with a link to their page."""
    rows = Example.objects.filter(conversation=conversation, message__seq=seq)
    values = {
        "conversation": conversation,
        "seq": seq,
        "rights": rights,
        "kinds": [each.get_label_display() for each in rows.only("label")],
    }
    return render_to_string("examples/_inspected.html", values)
