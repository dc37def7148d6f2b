"""What is drawn of attachments at the message box: a button, and a list of files."""

from django.conf import settings
from django.template.loader import render_to_string

from memory.transcript import WHOLE_CHARS


def draw_composer_part(place: str) -> str:
    """The part at this place of a page with a message box."""
    # The page says at once what the server would say in a moment.
    values = {"max_mb": settings.ATTACHMENT_MAX_MB, "max_chars": WHOLE_CHARS}
    values["max_bytes"] = values["max_mb"] * 1024 * 1024
    return render_to_string(f"attachments/_{place}.html", values)
