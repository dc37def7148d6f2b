"""The turns of a client's conversation, as its rows are stored."""

import pytest

from chatsite.contrib.endpoint.store.client_turns import ClientTurns
from memory.models import Conversation, Message

CALL = [{"name": "list_files", "args": {}, "id": "c1"}]


@pytest.mark.django_db
def test_a_summary_between_a_call_and_its_results_keeps_its_reply(alice):
    """A client that compacts inside a tool loop puts its summary, with a reply of its
    own, after the call that waits."""
    conversation = Conversation.objects.create(owner=alice)

    def store(seq, role, text, **more):
        given = {"conversation": conversation, "role": role, "text": text, "tokens": 1}
        return Message.objects.create(seq=seq, **given, **more)

    asked = [store(1, "user", "What is in here?")]
    ClientTurns(conversation).add_rows(asked)
    store(2, "assistant", "", tool_calls=CALL)
    turns = ClientTurns(conversation)
    agreed = store(4, "assistant", "Understood.")
    found = store(5, "tool", "README.md", tool_call_id="c1")
    turns.add_rows([store(3, "user", "Summary: files."), agreed, found])
    assert turns.find_turn().user_message == found
    assert agreed.turn.reply == agreed
