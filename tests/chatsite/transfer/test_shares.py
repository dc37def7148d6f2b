"""Links: what they show of a conversation that goes on, and when they open nothing."""

import re
from datetime import timedelta

import pytest
from django.db.models.functions import Now

from chatsite.accounts import account
from chatsite.transfer import copies, shares
from chatsite.turns import commands
from chatsite.turns.models import Share, Turn
from chatsite.turns.requests import reply_call
from memory import actions, library, transcript
from tests.memory.scenes import state_rule, summarise

from ..scenes import Use, answer, submit, talk_in_turns, use_tools

pytestmark = pytest.mark.django_db


@pytest.fixture
def share(conversation):
    """Of two questions and their replies, #1 to #4."""
    return shares.create(conversation, with_view=True)


def shown(share):
    rows = shares.messages(share).order_by("seq")
    return list(rows.values_list("seq", flat=True))


def opens(share):
    try:
        return shares.find(share.token).pk == share.pk
    except Share.DoesNotExist:
        return False


def is_whole(share, reply):
    return shares.is_whole(share, reply_call(share.conversation, reply))


class TestMaking:
    def test_a_link_has_192_random_bits(self, conversation):
        tokens = {shares.create(conversation).token for _ in range(5)}
        assert len(tokens) == 5
        assert all(re.fullmatch("[A-Za-z0-9_-]{32}", token) for token in tokens)

    def test_it_ends_after_its_days(self, conversation):
        made = shares.create(conversation, days=7)
        assert made.expires_at - made.created_at == timedelta(days=7)

    def test_what_an_open_turn_adds_to_is_left_out_with_its_question(
        self, conversation
    ):
        submit(conversation, "Still thinking?")
        share = shares.create(conversation)
        answer(conversation, "Yes.")
        assert share.last_seq == 4
        assert shown(share) == [1, 2, 3, 4]

    def test_there_has_to_be_something_to_show(self, alice):
        empty = transcript.create(alice)
        submit(empty, "Hello")
        with pytest.raises(shares.ShareError, match="no finished reply"):
            shares.create(empty)

    def test_a_temporary_conversation_has_none(self, alice):
        made = transcript.create(alice, temporary=True)
        talk_in_turns(made, "Hello")
        with pytest.raises(shares.ShareError, match="does not last"):
            shares.create(made)

    def test_a_conversation_has_so_many_links_and_no_more(
        self, conversation, monkeypatch
    ):
        monkeypatch.setattr(shares, "MOST_OPEN", 2)
        first = shares.create(conversation)
        shares.create(conversation)
        with pytest.raises(shares.ShareError, match="Revoke one"):
            shares.create(conversation)
        shares.revoke(conversation, first.pk)
        assert shares.create(conversation)

    def test_only_the_latest_ended_ones_are_kept(self, conversation, monkeypatch):
        monkeypatch.setattr(shares, "MOST_ENDED", 3)
        for _ in range(8):
            shares.revoke(conversation, shares.create(conversation).pk)
        shares.create(conversation)
        assert conversation.shares.count() == 4


class TestWhatItShows:
    def test_the_conversation_up_to_a_message(self, conversation):
        assert shown(shares.create(conversation, last_seq=2)) == [1, 2]

    def test_nothing_that_comes_later(self, conversation, share):
        talk_in_turns(conversation, "And mine?")
        assert shown(share) == [1, 2, 3, 4]

    def test_the_wording_of_then_after_an_edit_and_another_reply(
        self, conversation, share
    ):
        commands.edit(conversation, seq=3, text="What is hers?", client_id="better")
        answer(conversation, "800 euros")
        turn = conversation.turns.order_by("pk").last()
        commands.regenerate(conversation, turn.pk)
        assert shown(share) == [1, 2, 3, 4]
        assert is_whole(share, 4)

    def test_not_what_had_been_replaced(self, conversation):
        commands.edit(conversation, seq=3, text="What is hers?", client_id="better")
        answer(conversation, "800 euros")
        assert shown(shares.create(conversation)) == [1, 2, 5, 6]

    def test_not_what_is_hidden_or_deleted_before_or_after(self, conversation):
        talk_in_turns(conversation, "Five", "Seven")
        actions.exclude_messages(conversation, [1])
        actions.delete_message(conversation, 3)
        share = shares.create(conversation)
        assert shown(share) == [2, 4, 5, 6, 7, 8]
        actions.exclude_messages(conversation, [5])
        actions.delete_message(conversation, 7)
        assert shown(share) == [2, 4, 6, 8]

    def test_calls_of_tools_only_with_the_models_view(self, conversation):
        use_tools(conversation, "Look it up", Use())
        roles = [
            list(shares.messages(each).order_by("seq").values_list("role", flat=True))
            for each in (
                shares.create(conversation),
                shares.create(conversation, with_view=True),
            )
        ]
        assert roles[0] == ["user", "assistant"] * 3
        assert roles[1] == [*["user", "assistant"] * 3, "tool", "assistant"]

    def test_only_a_title_that_its_owner_gave(self, conversation, share):
        assert shares.title_of(share) == "Trip to Kyoto"
        conversation.title_set_by = conversation.TitleSource.AUTO
        conversation.save()
        share.refresh_from_db()
        assert shares.title_of(share) == "Hello"


class TestRequests:
    def test_replies_have_one_only_where_the_models_view_is_shared(self, conversation):
        assert not shares.replies(shares.create(conversation)).exists()

    def test_replies_after_the_last_message_have_none(self, conversation):
        share = shares.create(conversation, last_seq=2, with_view=True)
        assert [row.seq for row in shares.replies(share)] == [2]

    @pytest.mark.parametrize("hide", [actions.exclude_messages, actions.delete_message])
    def test_one_with_a_message_that_is_hidden_since_is_not_shown(
        self, conversation, share, hide
    ):
        assert is_whole(share, 2)
        assert is_whole(share, 4)
        hide(conversation, [2] if hide is actions.exclude_messages else 2)
        assert is_whole(share, 2)
        assert not is_whole(share, 4)

    def test_one_with_a_summary_of_a_hidden_message_is_not_shown(self, conversation):
        summarise(conversation, 1, 2)
        talk_in_turns(conversation, "Five")
        share = shares.create(conversation, with_view=True)
        assert is_whole(share, 6)
        actions.exclude_messages(conversation, [1])
        assert not is_whole(share, 6)

    def test_a_summary_written_without_it_can_be_shown(self, conversation):
        actions.exclude_messages(conversation, [1])
        summarise(conversation, 1, 2)
        talk_in_turns(conversation, "Five")
        assert is_whole(shares.create(conversation, with_view=True), 6)

    def test_one_with_a_rule_of_a_hidden_message_is_not_shown(self, alice):
        made = transcript.create(alice)
        state_rule(made, "Always answer in Dutch.")
        summarise(made, 1, made.messages.count())
        talk_in_turns(made, "And now?")
        share = shares.create(made, with_view=True)
        reply = share.last_seq
        call = reply_call(made, reply)
        assert call.refs["rules"]
        call.refs = {**call.refs, "summaries": []}
        assert shares.is_whole(share, call)
        actions.exclude_messages(made, [call.refs["rules"][0][0]])
        assert not shares.is_whole(share, call)


class TestOpening:
    def test_it_opens_until_it_is_revoked(self, conversation, share):
        assert opens(share)
        assert shares.revoke(conversation, share.pk)
        assert not opens(share)
        assert not shares.revoke(conversation, share.pk)

    def test_it_opens_until_its_end(self, share):
        Share.objects.filter(pk=share.pk).update(expires_at=Now())
        assert not opens(share)

    def test_not_while_the_site_has_no_links(self, share, settings):
        settings.SHARE_LINKS = False
        assert not opens(share)
        settings.SHARE_LINKS = True
        assert opens(share)

    def test_not_while_its_conversation_is_deleted(self, alice, conversation, share):
        library.delete_conversation(conversation)
        assert not opens(share)
        assert not shares.of_user(alice).exists()
        library.restore_conversation(alice, conversation.uuid)
        assert opens(share)

    def test_not_while_its_owner_is_shut_out(self, alice, share):
        alice.is_active = False
        alice.save()
        assert not opens(share)

    def test_it_goes_with_its_conversation(self, conversation, share):
        library.erase_conversation(conversation)
        assert not Share.objects.exists()

    def test_it_goes_with_the_account(self, alice, share):
        account.delete(alice)
        assert not Share.objects.exists()

    def test_a_copy_has_no_link(self, conversation, share):
        assert not copies.branch(conversation, 4).shares.exists()

    def test_opens_are_counted(self, share):
        shares.count_open(share)
        shares.count_open(share)
        share.refresh_from_db()
        assert share.opens == 2
        assert share.last_opened_at >= share.created_at


def test_a_stopped_reply_can_be_shared(alice):
    made = transcript.create(alice)
    submit(made, "Hello")
    answer(made, "Half", state=Turn.State.STOPPED)
    assert shown(shares.create(made)) == [1, 2]
