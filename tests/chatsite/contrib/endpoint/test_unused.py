"""A site without keys: conversations on its pages load nothing of the endpoint."""

import subprocess
import sys

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chatsite.contrib.endpoint.models import ApiKey
from tests.chatsite import scenes
from tests.databases import copy_sqlite
from tests.servers import ROOT, Site

# Modules that read, store, relay and shorten the requests of clients.
WORK = ("access", "bounding", "identity", "relay", "request_handling", "store")
SCRIPT = """
import sys, django
django.setup()
from django.contrib.auth import get_user_model
from django.test import Client
import chatsite.asgi
from memory import transcript
from tests.chatsite import scenes
alice = get_user_model().objects.create_user("alice")
conversation = transcript.create_conversation(alice)
scenes.talk_in_turns(conversation, "Hello", "Where is Kyoto?")
client = scenes.signed_in(alice)
page = scenes.page_of(client, conversation)
assert "Reply to: Hello" in page
assert client.get(scenes.url("context", conversation)).status_code == 200
assert client.get("/", follow=True).status_code == 200
start = "chatsite.contrib.endpoint."
print(*sorted(name for name in sys.modules if name.startswith(start)))
"""


@pytest.mark.server
def test_modules_for_clients_are_not_loaded(tmp_path):
    database = copy_sqlite(tmp_path / "site.sqlite3")
    env = Site({"DATABASE_URL": database, "DEBUG": "true"}).environment()
    command = [sys.executable, "-c", SCRIPT]
    told = subprocess.run(
        command, env=env, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, told.stderr
    loaded = {name.split(".")[3] for name in told.stdout.split()}
    assert "asgi" in loaded
    assert loaded.isdisjoint(WORK), told.stdout


@pytest.mark.django_db
def test_a_turn_asks_no_table_of_clients(alice, conversation):
    scenes.talk_in_turns(conversation, "Hello")
    with CaptureQueriesContext(connection) as asked:
        scenes.talk_in_turns(conversation, "Where is Kyoto?")
    assert len(asked) > 10
    table = ApiKey._meta.db_table.removesuffix("apikey")
    assert not [each["sql"] for each in asked if table in each["sql"]]
