"""Links: what they show of a conversation that goes on, and when they open nothing."""

import re
from datetime import timedelta

import pytest
from django.db.models.functions import Now

from chatsite.accounts import account
from chatsite.features.sharing import services
from chatsite.features.sharing.link_contents import (
    is_request_shown,
    shown_messages,
    shown_replies,
    title_of_share,
)
from chatsite.features.sharing.models import Share
from chatsite.features.sharing.services import (
    ShareError,
    count_opening,
    create_share,
    find_share,
    list_shares_of_user,
    revoke_share,
)
from chatsite.turns import commands
from chatsite.turns.copying import copies
from chatsite.turns.models import Turn
from chatsite.turns.requests import reply_call
from memory import actions, library, transcript
from tests.memory.scenes import summarise

from ...scenes import Use, answer, submit, talk_in_turns, use_tools
from ..rules.scenes import state_rule

pytestmark = pytest.mark.django_db


@pytest.fixture
def share(conversation):
    """Share two questions and their replies, #1 to #4."""
    return create_share(conversation, with_view=True)


def shown(share):
    rows = shown_messages(share).order_by("seq")
    return list(rows.values_list("seq", flat=True))


def opens(share):
    try:
        return find_share(share.token).pk == share.pk
    except Share.DoesNotExist:
        return False


def is_whole(share, reply):
    return is_request_shown(share, reply_call(share.conversation, reply))


class TestMaking:
    def test_a_link_has_192_random_bits(self, conversation):
        tokens = {create_share(conversation).token for _ in range(5)}
        assert len(tokens) == 5
        assert all(re.fullmatch("[A-Za-z0-9_-]{32}", token) for token in tokens)

    def test_link_ends_after_its_days(self, conversation):
        made = create_share(conversation, days=7)
        assert made.expires_at - made.created_at == timedelta(days=7)

    def test_open_turn_is_left_out_with_its_question(self, conversation):
        submit(conversation, "Still thinking?")
        share = create_share(conversation)
        answer(conversation, "Yes.")
        assert share.last_seq == 4
        assert shown(share) == [1, 2, 3, 4]

    def test_link_needs_something_to_show(self, alice):
        empty = transcript.create_conversation(alice)
        submit(empty, "Hello")
        with pytest.raises(ShareError, match="no finished reply"):
            create_share(empty)

    def test_a_temporary_conversation_has_none(self, alice):
        made = transcript.create_conversation(alice, temporary=True)
        talk_in_turns(made, "Hello")
        with pytest.raises(ShareError, match="does not last"):
            create_share(made)

    def test_a_conversation_has_so_many_links_and_no_more(
        self, conversation, monkeypatch
    ):
        monkeypatch.setattr(services, "MOST_OPEN", 2)
        first = create_share(conversation)
        create_share(conversation)
        with pytest.raises(ShareError, match="Revoke one"):
            create_share(conversation)
        revoke_share(conversation, first.pk)
        assert create_share(conversation)

    def test_ended_links_have_a_limit(self, conversation, monkeypatch):
        monkeypatch.setattr(services, "MOST_ENDED", 3)
        for _ in range(8):
            revoke_share(conversation, create_share(conversation).pk)
        create_share(conversation)
        assert conversation.shares.count() == 4


class TestWhatItShows:
    def test_the_conversation_up_to_a_message(self, conversation):
        assert shown(create_share(conversation, last_seq=2)) == [1, 2]

    def test_later_messages_are_not_shown(self, conversation, share):
        talk_in_turns(conversation, "And mine?")
        assert shown(share) == [1, 2, 3, 4]

    def test_the_wording_of_then_after_an_edit_and_another_reply(
        self, conversation, share
    ):
        commands.edit_message(
            conversation, seq=3, text="What is hers?", client_id="better"
        )
        answer(conversation, "800 euros")
        turn = conversation.turns.order_by("pk").last()
        commands.regenerate_reply(conversation, turn.pk)
        assert shown(share) == [1, 2, 3, 4]
        assert is_whole(share, 4)

    def test_replaced_messages_are_not_shown(self, conversation):
        commands.edit_message(
            conversation, seq=3, text="What is hers?", client_id="better"
        )
        answer(conversation, "800 euros")
        assert shown(create_share(conversation)) == [1, 2, 5, 6]

    def test_messages_hidden_or_deleted_at_any_time_are_not_shown(self, conversation):
        talk_in_turns(conversation, "Five", "Seven")
        actions.exclude_messages(conversation, [1])
        actions.delete_message(conversation, 3)
        share = create_share(conversation)
        assert shown(share) == [2, 4, 5, 6, 7, 8]
        actions.exclude_messages(conversation, [5])
        actions.delete_message(conversation, 7)
        assert shown(share) == [2, 4, 6, 8]

    def test_calls_of_tools_only_with_the_models_view(self, conversation):
        use_tools(conversation, "Look it up", Use())
        roles = [
            list(shown_messages(each).order_by("seq").values_list("role", flat=True))
            for each in (
                create_share(conversation),
                create_share(conversation, with_view=True),
            )
        ]
        assert roles[0] == ["user", "assistant"] * 3
        assert roles[1] == [*["user", "assistant"] * 3, "tool", "assistant"]

    def test_title_is_shown_only_if_its_owner_gave_it(self, conversation, share):
        assert title_of_share(share) == "Trip to Kyoto"
        conversation.title_set_by = conversation.TitleSource.AUTO
        conversation.save()
        share.refresh_from_db()
        assert title_of_share(share) == "Hello"


class TestRequests:
    def test_replies_have_one_only_where_the_models_view_is_shared(self, conversation):
        assert not shown_replies(create_share(conversation)).exists()

    def test_replies_after_the_last_message_have_none(self, conversation):
        share = create_share(conversation, last_seq=2, with_view=True)
        assert [row.seq for row in shown_replies(share)] == [2]

    @pytest.mark.parametrize("hide", [actions.exclude_messages, actions.delete_message])
    def test_request_with_a_message_hidden_since_is_not_shown(
        self, conversation, share, hide
    ):
        assert is_whole(share, 2)
        assert is_whole(share, 4)
        hide(conversation, [2] if hide is actions.exclude_messages else 2)
        assert is_whole(share, 2)
        assert not is_whole(share, 4)

    def test_request_with_a_summary_of_a_hidden_message_is_not_shown(
        self, conversation
    ):
        summarise(conversation, 1, 2)
        talk_in_turns(conversation, "Five")
        share = create_share(conversation, with_view=True)
        assert is_whole(share, 6)
        actions.exclude_messages(conversation, [1])
        assert not is_whole(share, 6)

    def test_a_summary_written_without_it_can_be_shown(self, conversation):
        actions.exclude_messages(conversation, [1])
        summarise(conversation, 1, 2)
        talk_in_turns(conversation, "Five")
        assert is_whole(create_share(conversation, with_view=True), 6)

    def test_request_with_a_rule_of_a_hidden_message_is_not_shown(self, alice):
        made = transcript.create_conversation(alice)
        state_rule(made, "Always answer in Dutch.")
        summarise(made, 1, made.messages.count())
        talk_in_turns(made, "And now?")
        share = create_share(made, with_view=True)
        reply = share.last_seq
        call = reply_call(made, reply)
        assert call.refs["rules"]
        call.refs = {**call.refs, "summaries": []}
        assert is_request_shown(share, call)
        actions.exclude_messages(made, [call.refs["rules"][0][0]])
        assert not is_request_shown(share, call)


class TestOpening:
    def test_link_opens_until_it_is_revoked(self, conversation, share):
        assert opens(share)
        assert revoke_share(conversation, share.pk)
        assert not opens(share)
        assert not revoke_share(conversation, share.pk)

    def test_link_opens_until_its_end(self, share):
        Share.objects.filter(pk=share.pk).update(expires_at=Now())
        assert not opens(share)

    def test_link_is_closed_while_the_site_has_no_links(self, share, settings):
        settings.SHARE_LINKS = False
        assert not opens(share)
        settings.SHARE_LINKS = True
        assert opens(share)

    def test_link_is_closed_while_its_conversation_is_deleted(
        self, alice, conversation, share
    ):
        library.delete_conversation(conversation)
        assert not opens(share)
        assert not list_shares_of_user(alice).exists()
        library.restore_all(alice, [conversation.uuid])
        assert opens(share)

    def test_link_is_closed_while_its_owner_is_deactivated(self, alice, share):
        alice.is_active = False
        alice.save()
        assert not opens(share)

    def test_link_is_deleted_with_its_conversation(self, conversation, share):
        library.erase_conversation(conversation)
        assert not Share.objects.exists()

    def test_link_is_deleted_with_the_account(self, alice, share):
        account.delete_account(alice)
        assert not Share.objects.exists()

    def test_a_copy_has_no_link(self, conversation, share):
        assert not copies.branch_conversation(conversation, 4).shares.exists()

    def test_opens_are_counted(self, share):
        count_opening(share)
        count_opening(share)
        share.refresh_from_db()
        assert share.opens == 2
        assert share.last_opened_at >= share.created_at


def test_a_stopped_reply_can_be_shared(alice):
    made = transcript.create_conversation(alice)
    submit(made, "Hello")
    answer(made, "Half", state=Turn.State.STOPPED)
    assert shown(create_share(made)) == [1, 2]
