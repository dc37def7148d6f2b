"""Rows that a test is not about: written into the database of a site that is running,
before a page shows them. Sending each from the page takes ten times as long.
"""

from concurrent.futures import ThreadPoolExecutor

from django.contrib.auth import get_user_model
from django.db import connections, transaction

from bench.long_conversation import make
from chatsite.features.unread.models import UnreadTurn
from chatsite.turns import lifecycle
from memory import transcript
from memory.models import Conversation
from tests.chatsite.scenes import submit, talk_in_turns

from .pages import USER


def work_in(site, work, *args):
    """Return the result of work(*args) in the database of the site."""
    # Not in this thread, where Playwright has its event loop.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(_work_in, site, work, args).result()


def _work_in(site, work, args):
    connection = connections["default"]
    connection.settings_dict["NAME"] = site.env["DATABASE_URL"].partition("///")[2]
    try:
        # Together, or the sweep of the site would claim a turn.
        with transaction.atomic():
            return work(*args)
    finally:
        connection.close()


def look_at_all():
    """Mark everything as read that tests before this one have left behind."""
    UnreadTurn.objects.filter(conversation__owner__username=USER).delete()


def write_turns(address, *texts):
    """Messages of the conversation at this address, and replies to them."""
    uuid = address.rstrip("/").rpartition("/")[2]
    talk_in_turns(Conversation.objects.get(uuid=uuid), *texts)


def write_texts(texts):
    """The path of a new conversation that is never summarised, and that no model has
    seen: (message, reply) of each turn."""
    made = transcript.create_conversation(
        find_owner(), title="Long", policy={"enabled": False}
    )
    for text, reply in texts:
        submit(made, text)
        claim = lifecycle.claim(made.pk)
        lifecycle.finish(claim, lifecycle.TurnResult("done", reply))
    return f"/c/{made.uuid}/"


def write_long(size):
    """The path of a conversation of that many messages, compacted up to the last 20.
    Message n names captain Nemo<n>."""
    return f"/c/{make(find_owner(), size).uuid}/"


def find_owner():
    return get_user_model().objects.get(username=USER)
