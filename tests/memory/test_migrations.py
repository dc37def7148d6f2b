"""Databases that people have filled go up and down the migrations without loss."""

from importlib import import_module

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.models import QuerySet
from django.db.models.signals import pre_migrate

from memory import transcript
from memory.engine.policy import Policy
from memory.integrity import audit
from memory.models import Conversation, Message, RecallEntry
from memory.search import recall

from .scenes import add_turns, summarise

pytestmark = pytest.mark.django_db(transaction=True)
RELEASED = "0002_recall"


def migrate(name):
    executor = MigrationExecutor(connection)
    targets = [key for key in executor.loader.graph.leaf_nodes() if key[0] != "memory"]
    executor.migrate([("memory", name)] if name else targets + newest(executor))


def newest(executor):
    return executor.loader.graph.leaf_nodes("memory")


@pytest.fixture
def filled(alice):
    made = transcript.create_conversation(alice, title="Trip")
    add_turns(made, 3)
    for policy_hash in (Policy().digest(), "0" * 64):
        summarise(made, 1, 2, policy_hash=policy_hash, status="superseded")
    yield made
    migrate("")


def test_a_filled_database_goes_back_and_up_again(filled, monkeypatch):
    texts = [*filled.messages.values_list("seq", "text")]
    entries = read_entries()
    migrate(RELEASED)
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM memory_message")
        assert cursor.fetchone() == (len(texts),)
    interrupt_indexing_by_passages(monkeypatch)
    assert RecallEntry.objects.filter(terms="old").count() == len(entries) - 4 == 2
    migrate("")
    assert [*filled.messages.values_list("seq", "text")] == texts
    assert read_entries() == entries
    assert Conversation.objects.get(pk=filled.pk).set_aside is None
    assert list(audit.find_broken_signatures()) == []
    policies = filled.summaries.order_by("version").values_list("preset", flat=True)
    assert [*policies] == ["layered", ""]
    # The search index follows what is written after the upgrade.
    transcript.append_user_message(filled, text="A zeppelin!", client_id="z")
    assert recall.recall_messages(filled, "zeppelin")[0].seq == 7
    QuerySet(Message).filter(pk=filled.messages.first().pk).delete()
    assert RecallEntry.objects.count() == Message.objects.count()
    assert list(audit.find_bad_index()) == []


def read_entries():
    fields = ("message_id", "seq", "terms", "passages")
    return [*RecallEntry.objects.order_by("message_id").values_list(*fields)]


def interrupt_indexing_by_passages(monkeypatch):
    """Index in batches of two and stop in the third: the first two stay written."""
    migrate("0018_recall_passages")
    RecallEntry.objects.update(terms="old", passages=None)
    module = import_module("memory.migrations.0019_index_passages")
    described = iter(range(5))
    describe = recall.describe_entry

    def describe_some(message):
        if next(described, None) is None:
            raise KeyboardInterrupt
        return describe(message)

    with monkeypatch.context() as patch:
        patch.setattr(module, "BATCH", 2)
        patch.setattr(recall, "describe_entry", describe_some)
        with pytest.raises(KeyboardInterrupt):
            migrate("0019_index_passages")


def test_messages_of_an_older_release_are_found_in_other_forms(filled):
    transcript.append_user_message(filled, text="In Zürich", client_id="a")
    entries = read_entries()
    migrate("0038_title_seqs")
    old = "".join(recall.make_keys(filled.pk, ["zürich"]))
    RecallEntry.objects.filter(seq=7).update(terms=old)
    assert recall.recall_messages(filled, "zurich") == []
    migrate("")
    assert recall.recall_messages(filled, "zurich")[0].seq == 7
    assert read_entries() == entries
    assert list(audit.find_bad_index()) == []


LIMITS = ("lock_timeout", "idle_in_transaction_session_timeout")


def limits():
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            return [cursor.execute("PRAGMA busy_timeout").fetchone()[0]]
        found = []
        for name in LIMITS:
            cursor.execute(f"SHOW {name}")
            found.append(cursor.fetchone()[0])
        return found


def test_migrations_have_no_limits_of_a_process_that_serves(db):
    """A change that took more than five seconds was cut off in its transaction. Only
    the wait for a lock is short, and tried again."""
    before, within = limits(), []

    def look(sender, **kwargs):
        within.append(limits())

    pre_migrate.connect(look)
    try:
        call_command("migrate", verbosity=0)
    finally:
        pre_migrate.disconnect(look)
    served = [20_000] if connection.vendor == "sqlite" else ["2s", "5s"]
    free = [24 * 3600 * 1000] if connection.vendor == "sqlite" else ["250ms", "0"]
    assert (before, limits()) == (served, served)
    assert within
    assert all(each == free for each in within)
