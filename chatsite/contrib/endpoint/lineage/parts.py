"""Parts of other pages: links to the explanation, and a conversation's origin."""

from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _

from chatsite.contrib.endpoint.conversation_hooks import is_of_client
from chatsite.contrib.endpoint.models import ClientConversation, ClientRequest
from chatsite.pages.presenters.transcript_pane import ShownMessage
from memory.models import Conversation

from .joining import list_of_owner
from .reason_texts import LINEAGES

LINK = '<a class="{}" href="{}?reply={}">{}</a>'


def draw_why_item(conversation: Conversation, message: ShownMessage) -> str:
    """Return the link in the menu of a client's reply, or ""."""
    is_asked = message.role == "assistant" and message.has_request
    if not is_asked or not is_of_client(conversation):
        return ""
    return _draw_why_link(conversation, message.seq, "item")


def draw_beside_sent(conversation: Conversation, seq: int) -> str:
    """Return the lineage and a link, for the pane with the request of a reply."""
    if not is_of_client(conversation):
        return ""
    rows = ClientRequest.objects.filter(
        call__conversation=conversation, call__message__seq=seq
    )
    lineage = rows.order_by("-pk").values_list("lineage", flat=True).first()
    if lineage is None:
        return ""
    words, link = LINEAGES.get(lineage, lineage), _draw_why_link(conversation, seq, "")
    drawn = format_html(" · {} · {}", words, link)
    summaries = conversation.provider_summaries.filter(last_seq__lt=seq)
    if summaries.exists():
        drawn += format_html(" · {}", _("The provider summarised messages before it"))
    return drawn


def _draw_why_link(conversation: Conversation, reply: int, style: str) -> str:
    url = reverse("endpoint-why", args=[conversation.uuid])
    return format_html(LINK, style, url, reply, _("Which conversation, and why"))


def draw_origin(conversation: Conversation) -> str:
    """Return the lines above the first message: what it continues or belongs to."""
    if not is_of_client(conversation):
        return ""
    rows = ClientConversation.objects.filter(pk=conversation.pk)
    own = rows.select_related("joined", "linked", "parent").first()
    if own is None:
        return ""
    later = list_of_owner(conversation.owner_id).filter(joined=conversation)
    values = {"conversation": conversation, "own": own}
    values["later"] = later.select_related("conversation").first()
    return render_to_string("endpoint/_origin.html", values)
