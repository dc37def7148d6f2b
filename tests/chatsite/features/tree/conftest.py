"""Conversations with branches."""

import uuid

import pytest

from chatsite.features.tree import services
from memory import transcript

from ...scenes import answer, talk_in_turns


@pytest.fixture
def talked(alice):
    """#1 Zurich, #3 Hotel, #5 Train, each with a reply."""
    made = transcript.create_conversation(alice, title="Trip")
    talk_in_turns(made, "Zurich", "Hotel", "Train")
    return made


@pytest.fixture
def branch():
    """branch(conversation, seq, text) -> the branch that says it so, with a reply."""

    def make(conversation, seq, text, reply="Reply to it"):
        made = services.edit_as_branch(
            conversation, seq=seq, text=text, client_id=uuid.uuid4().hex
        )
        if reply:
            answer(made, reply)
        return made

    return make
