"""Parts of pages that are rendered once for all tabs and reloads: a finished turn, a
row of the list.

Each is kept by everything that it shows, so a part that has changed is another part.
"""

from collections.abc import Hashable

from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import get_language

from memory.models import Conversation

from .html_cache import Cache
from .presenters.transcript_pane import TurnView

# Enough for the latest page of some hundred conversations.
CACHE_BYTES = 32 * 1024 * 1024

cache = Cache(CACHE_BYTES)


def turn(conversation: Conversation, view: TurnView) -> SafeString:
    """One turn of the transcript. What is still being written changes too often to be
    kept."""
    template, values = "chat/_turn.html", {"conversation": conversation, "turn": view}
    if view.partial is not None:
        return render_to_string(template, values)
    return _keep(template, values, conversation.uuid, view.id, view.digest)


def row(listed: Conversation, *, is_open: bool, query: str) -> SafeString:
    """One conversation of the list."""
    is_marked = bool(query and listed.archived_at)
    values = {"row": listed, "is_open": is_open, "is_marked": is_marked}
    shown = (listed.uuid, listed.title, listed.updated_at, is_open, is_marked)
    return _keep("chat/_conversation_row.html", values, *shown)


def _keep(template: str, values: dict[str, object], *shown: Hashable) -> SafeString:
    """The template rendered with these values, of which it shows `shown`."""
    key = (template, get_language(), timezone.get_current_timezone_name(), *shown)
    html = cache.get(key)
    if html is None:
        html = render_to_string(template, values)
        cache.put(key, html)
    return html
