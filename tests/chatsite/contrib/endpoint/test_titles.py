"""Titles of clients' conversations: words that a user has written."""

import pytest

from chatsite.contrib.endpoint import keys
from memory.models import Conversation

from .asgi_client import send

pytestmark = pytest.mark.django_db(transaction=True)
NOTES = (
    "<system-reminder>\nKeep <b>it</b> short.\n</system-reminder>\n",
    "<environment_context>\n  <cwd>/home/ann</cwd>\n</environment_context>",
    "<user_instructions kind='own'>Say it plainly.</user_instructions>\n\n",
)


@pytest.mark.parametrize(
    ("said", "title"),
    [
        *((f"{note}Why is the sky blue?", "Why is the sky blue?") for note in NOTES),
        (f"{''.join(NOTES)}Why is the sky blue?", "Why is the sky blue?"),
        ("<p>Why is this not closed?", "<p>Why is this not closed?"),
        ("<b>Bold</b>", "<b>Bold</b>"),
    ],
)
def test_a_title_leaves_out_notes_of_clients(alice, upstream, said, title):
    _, key = keys.create_api_key(alice, "codex")
    send(key, {"role": "user", "content": said})
    assert Conversation.objects.get().title == title


def test_a_title_is_of_the_first_message_with_words(alice, upstream):
    _, key = keys.create_api_key(alice, "codex")
    said = (NOTES[1], "Why is the sky blue?")
    send(key, *({"role": "user", "content": each} for each in said))
    assert Conversation.objects.get().title == "Why is the sky blue?"
