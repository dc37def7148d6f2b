"""News of a conversation, until its user looks at it."""

import pytest
from channels.db import database_sync_to_async

from chatsite.features.unread import services
from chatsite.features.unread.events import Unread, tell_of_turn
from chatsite.features.unread.models import UnreadTurn
from chatsite.protocol import events
from chatsite.turns import runner
from chatsite.turns.models import Turn
from memory import library, transcript
from memory.models import Conversation

from ...scenes import page_of, talk_in_turns
from ...sockets import Chat

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def ended(conversation):
    """A turn that its user has not looked at."""
    Conversation.objects.filter(pk=conversation.pk).update(title="Kyoto")
    talk_in_turns(conversation, "Where is it?")
    turn = Turn.objects.filter(conversation=conversation).last()
    assert services.note_turn(turn, turn.state)
    return turn


def find(user):
    return [(each.kind, each.text) for each in services.find_news(user.pk)]


class TestNews:
    def test_news_are_unread_until_their_owner_looks(self, alice, bob, ended):
        assert find(alice) == [("reply", "Kyoto")]
        assert find(bob) == []
        assert services.look_at(ended.conversation)
        assert find(alice) == []
        assert not services.look_at(ended.conversation)

    @pytest.mark.parametrize(
        ("state", "kind"),
        [("failed", "failure"), ("waiting", "question"), ("interrupted", "failure")],
    )
    def test_news_describe_the_turn_as_it_is_now(self, alice, ended, state, kind):
        Turn.objects.filter(pk=ended.pk).update(state=state)
        assert find(alice) == [(kind, "Kyoto")]

    @pytest.mark.parametrize("state", ["stopped", "running", "queued"])
    def test_actions_of_the_user_are_no_news(self, alice, ended, state):
        assert services.note_turn(ended, state) is None
        Turn.objects.filter(pk=ended.pk).update(state=state)
        assert find(alice) == []

    def test_the_newest_turn_of_a_conversation_counts_once(self, alice, ended):
        talk_in_turns(ended.conversation, "And Nara?")
        later = ended.conversation.turns.last()
        services.note_turn(later, later.state)
        [news] = services.find_news(alice.pk)
        assert news.seq == later.reply.seq

    def test_a_temporary_one_has_no_title(self, alice):
        row = transcript.create_conversation(alice, title="Secret", temporary=True)
        talk_in_turns(row, "Psst")
        news = services.note_turn(row.turns.get(), "done")
        assert news.text == ""
        assert services.describe_news(news) == "New reply"

    def test_news_are_deleted_with_the_conversation(self, alice, ended):
        library.delete_conversation(ended.conversation)
        assert find(alice) == []
        library.erase_conversation(ended.conversation)
        assert not UnreadTurn.objects.exists()
        assert services.note_turn(ended, "done") is None


class TestPages:
    def test_every_page_with_the_list_knows_of_it(self, client, alice, ended):
        other = transcript.create_conversation(alice)
        for page in (page_of(client, other), client.get("/").content.decode()):
            [line] = [part for part in page.split("<a") if "news-link" in part]
            assert f"/c/{ended.conversation.uuid}/?at={ended.reply.seq}" in line
            assert ">New reply: Kyoto</a>" in line

    def test_page_shows_news_in_chinese(self, client, ended):
        client.cookies["django_language"] = "zh-hans"
        assert "新回复：Kyoto" in page_of(client, ended.conversation)

    def test_a_title_is_no_markup(self, client, ended):
        rows = Conversation.objects.filter(pk=ended.conversation_id)
        rows.update(title="<img src=x>")
        assert "New reply: &lt;img src=x" in client.get("/").content.decode()


class TestSocket:
    async def test_other_pages_of_the_person_are_told(self, alice, session, upstream):
        make = database_sync_to_async(transcript.create_conversation)
        here, there = await make(alice), await make(alice)
        async with Chat(here, session) as chat, Chat(there, session) as other:
            await other.command(type="hello")
            await other.until("error")
            await chat.say("Hello")
            told = (await other.until("unread"))[-1]
            assert told["conversation"] == str(here.uuid)
            assert (told["kind"], told["count"]) == ("reply", 1)
            await chat.command(type="seen")
            assert (await other.until("unread"))[-1]["count"] == 0
            # No event is sent twice.
            await chat.command(type="seen")
            await other.command(type="sync")
            await other.command(type="hello")
            assert "unread" not in str(await other.until("error"))

    async def test_a_page_gets_its_line_without_a_look_at_the_database(
        self, session, ended, upstream
    ):
        async with Chat(ended.conversation, session, protocol="") as page:
            await page.html('id="unread"')
            await tell_of_turn(ended, "done")
            assert "New reply: Kyoto</a>" in await page.html('id="unread-now"')

    async def test_turn_does_not_wait_for_news(self, ended, monkeypatch):
        told = []
        monkeypatch.setattr(runner, "spawn_task", told.append)
        runner.tell_news(ended, "done")
        [work] = told
        work.close()


def test_other_processes_hear_the_same(alice, ended):
    [news] = services.find_news(alice.pk)
    event = Unread.from_news([news])
    assert events.from_layer({"event": events.to_json(event)}) == event
