"""Turns that a test is not about: written into the database of a site that is running,
before a page shows them. Sending each from the page takes ten times as long.
"""

from concurrent.futures import ThreadPoolExecutor

from django.db import connections, transaction

from memory.models import Conversation
from tests.chatsite.scenes import talk_in_turns


def write_turns(site, address, *texts):
    """Messages of the conversation at this address, and replies to them."""
    # Not in this thread, where Playwright has its event loop.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(_write_turns, site, address, texts).result()


def _write_turns(site, address, texts):
    connection = connections["default"]
    connection.settings_dict["NAME"] = site.env["DATABASE_URL"].partition("///")[2]
    try:
        # Together, or the sweep of the site would claim a turn.
        with transaction.atomic():
            uuid = address.rstrip("/").rpartition("/")[2]
            talk_in_turns(Conversation.objects.get(uuid=uuid), *texts)
    finally:
        connection.close()
