"""A link shows no request whose summary was written from a hidden message."""

import pytest

from chatsite.features.sharing.link_contents import is_request_shown
from chatsite.features.sharing.services import create_share
from memory import actions, transcript
from memory.actions import EditChoice
from tests.memory import scenes, test_edited_summaries
from tests.memory.scenes import add_turns, in_force
from tests.memory.test_edited_summaries import MINE, SEGMENTS, compact, hide

pytestmark = pytest.mark.django_db(transaction=True)
edited = test_edited_summaries.edited


class TestWhatStrangersSee:
    """A link shows no request whose summary was written from a hidden message."""

    def request(self, conversation):
        conversation.refresh_from_db()
        call = scenes.say(conversation, "And now?")
        return create_share(conversation, with_view=True, days=1), call

    def test_words_kept_over_a_hidden_message_are_not_shown(self, edited):
        hide(edited, 7, EditChoice.KEEP)
        assert not is_request_shown(*self.request(edited))

    def test_request_with_a_summary_edited_after_hiding_is_not_shown(
        self, edited, alice
    ):
        hide(edited, 7, EditChoice.KEEP)
        actions.rewrite_summary(edited, 5, "In Nara, as I said.", author=alice)
        assert not is_request_shown(*self.request(edited))

    def test_request_with_a_summary_of_an_edited_one_is_not_shown(self, alice):
        policy = SEGMENTS | {"strategy": "running"}
        made = transcript.create_conversation(alice, policy=policy)
        add_turns(made, 3)
        compact(made)
        actions.rewrite_summary(made, 1, MINE, author=alice)
        hide(made, 3, EditChoice.KEEP)
        add_turns(made, 3)
        compact(made, "Nara, and more words.")
        assert in_force(made)[0][3] == "Nara, and more words."
        assert not is_request_shown(*self.request(made))

    def test_request_with_a_summary_written_again_is_shown(self, edited):
        hide(edited, 7)
        compact(edited)
        assert is_request_shown(*self.request(edited))
