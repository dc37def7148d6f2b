"""The endpoint's parts of pages: the list of keys, and the link to other clients."""

from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _

from memory.models import Conversation

from . import keys
from .addresses import base_address

# Keys of a user that the account page lists.
MAX_KEYS = 200


def draw_keys_section(request: HttpRequest) -> str:
    rows = keys.only_valid(keys.list_api_keys(request.user))[:MAX_KEYS]
    values = {"keys": rows, "base": base_address(request)}
    return render_to_string("endpoint/_account.html", values, request)


def draw_continue_item(conversation: Conversation) -> str:
    """Return the link to the page that takes a conversation to another client."""
    url = reverse("endpoint-continue", args=[conversation.uuid])
    text = _("Continue in Claude Code or Codex")
    return format_html('<a href="{}">{}</a>', url, text)
