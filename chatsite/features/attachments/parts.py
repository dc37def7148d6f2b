"""What is drawn of attachments at the message box: a button, and a list of files."""

from django.conf import settings
from django.template.loader import render_to_string
from django.templatetags.static import static
from django.urls import reverse
from django.utils.html import format_html

from memory.models import Conversation

# In the head of a page with a message box; the script before that of the box.
STYLES = '<link rel="stylesheet" href="{}">'
SCRIPTS = '<script src="{}" data-module="{}" data-styles="{}" defer></script>'


def find_address(conversation: Conversation, seq: int, place: int) -> str:
    """Of an image of message `seq`, for its owner."""
    return reverse("attachment-image", args=(conversation.uuid, seq, place))


def draw_composer_part(place: str) -> str:
    """The part at this place of a page with a message box."""
    if place == "styles":
        return format_html(STYLES, static("attachments/attachments.css"))
    if place == "scripts":
        script, module = "attachments/attachments.js", "attachments/attachment-cards.js"
        # Those of the message that takes the files, too.
        styles = map(static, ("attachments/attachment-cards.css", "css/files.css"))
        return format_html(SCRIPTS, static(script), static(module), " ".join(styles))
    # The page says at once what the server would say in a moment.
    values = {
        "max_mb": settings.ATTACHMENT_MAX_MB,
        "max_bytes": settings.ATTACHMENT_MAX_MB * 1024 * 1024,
        "max_chars": settings.ATTACHMENT_MAX_CHARS,
    }
    return render_to_string(f"attachments/_{place}.html", values)
