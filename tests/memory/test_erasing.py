"""Erasing a long conversation: in parts that let others write, and to the end."""

import pytest
from django.db import OperationalError, connection

from chatsite.turns import audit as turn_audit
from memory import bundle, library, transcript
from memory.integrity import audit
from memory.models import Conversation, Message, Prompt, RecallEntry

from .scenes import talk

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def long(alice, monkeypatch):
    monkeypatch.setattr(bundle, "BATCH", 4)
    made = transcript.create_conversation(alice, system_prompt="Be brief.")
    talk(made, 5)
    return made


class Transactions:
    """Count how many messages each transaction deletes."""

    def __init__(self, fail_at=0):
        self.counts, self.fail_at = [], fail_at

    def __call__(self, execute, sql, params, many, context):
        if sql.startswith(("BEGIN", "SELECT")):
            return execute(sql, params, many, context)
        if sql.startswith('DELETE FROM "memory_message"'):
            self.counts.append(len(params))
            if len(self.counts) == self.fail_at:
                raise OperationalError("disk full")
        return execute(sql, params, many, context)


def test_transactions_delete_limited_batches(long):
    seen = Transactions()
    with connection.execute_wrapper(seen):
        library.erase_conversation(long)
    assert seen.counts == [4, 4, 2]
    for model in (Conversation, Message, Prompt, RecallEntry):
        assert not model.objects.exists()


def test_interrupted_erasure_is_hidden_and_purged(long, alice):
    with (
        connection.execute_wrapper(Transactions(fail_at=2)),
        pytest.raises(OperationalError),
    ):
        library.erase_conversation(long)
    assert Message.objects.count() == 6
    assert not library.list_own(alice).exists()
    assert not library.deleted_lately(alice).exists()
    assert not list(audit.check_memory()) + list(turn_audit.check_turns())
    assert library.purge_deleted() == 1
    assert not Prompt.objects.exists()
