"""Reminders that came: unread until the user looks at their conversation."""

import re

import pytest
from channels.db import database_sync_to_async
from django.urls import reverse

from chatsite.features.tools import late_results
from chatsite.features.tools.models import ToolCall
from chatsite.features.tools.tool_loop import reminders
from memory import actions, library, transcript
from memory.models import Conversation

from ...scenes import Use, menu_of, page_of, use_tools
from ...sockets import Chat

pytestmark = pytest.mark.django_db(transaction=True)


def remind(conversation, text="drink tea", name="remind_me"):
    """A call that waits for its time."""
    arguments = {"text": text, "in_minutes": 1}
    use = Use(name=name, arguments=arguments, state="late", result="Later.")
    return use_tools(conversation, "Remind me", use).tool_calls.get()


def come_due(call):
    return late_results.deliver(call.pk, "Reminder, asked for on Monday: drink tea")


@pytest.fixture
def due(conversation):
    call = remind(conversation)
    come_due(call)
    return call


class TestUnread:
    def test_reminder_is_unread_until_its_user_looks_at_it(
        self, conversation, due, bob
    ):
        [found] = reminders.find_unread(conversation.owner_id)
        assert (found.conversation, found.text) == (str(conversation.uuid), "drink tea")
        assert found.seq == ToolCall.objects.get().late_result.seq
        assert reminders.find_unread(bob.pk) == []
        assert reminders.look_at(conversation)
        assert reminders.find_unread(conversation.owner_id) == []
        assert not reminders.look_at(conversation)

    def test_reminder_is_deleted_with_its_message(self, conversation, due):
        library.delete_conversation(conversation)
        assert reminders.find_unread(conversation.owner_id) == []
        library.restore_all(conversation.owner, [conversation.uuid])
        seq = ToolCall.objects.get().late_result.seq
        actions.delete_message(Conversation.objects.get(), seq)
        assert reminders.find_unread(conversation.owner_id) == []

    def test_other_late_results_and_failed_ones_remind_of_nothing(self, conversation):
        come_due(remind(conversation, name="weigh"))
        late_results.deliver(remind(conversation).pk, "Too late.", failed=True)
        assert reminders.find_unread(conversation.owner_id) == []


class TestPages:
    def test_reminder_is_an_open_message(self, client, conversation, due):
        page = page_of(client, conversation)
        message = page.partition('<article class="message reminder"')[2]
        message = message.partition("</article>")[0]
        assert "Reminder: drink tea" in message
        seq = re.search(r'data-menu="(\d+)"', message)[1]
        assert "Hide from the model" in menu_of(client, conversation, seq)
        assert "asked for on" not in message

    def test_reminder_is_shown_in_chinese(self, client, conversation, due):
        client.cookies["django_language"] = "zh-hans"
        assert "提醒：drink tea" in page_of(client, conversation)

    def test_every_page_with_the_list_knows_of_it(self, client, conversation, due):
        other = transcript.create_conversation(conversation.owner)
        seq = ToolCall.objects.get().late_result.seq
        link = f"{reverse('conversation-detail', args=[conversation.uuid])}?at={seq}"
        for page in (page_of(client, other), client.get("/").content.decode()):
            assert link in page.partition('id="unread"')[2]

    def test_words_of_a_person_are_no_markup(self, client, conversation):
        come_due(remind(conversation, "<img src=x onerror=alert(1)>"))
        page = page_of(client, conversation)
        assert page.count("Reminder: &lt;img src=x") == 2
        assert "<img src=x" not in page

    def test_a_deleted_one_has_no_text(self, client, conversation, due):
        row = ToolCall.objects.get().late_result
        actions.delete_message(Conversation.objects.get(), row.seq)
        page = page_of(client, conversation)
        assert "Reminder" not in page
        assert 'class="message reminder"' not in page


class TestSocket:
    async def test_pages_of_the_user_are_all_notified(self, alice, session, upstream):
        make = database_sync_to_async(transcript.create_conversation)
        conversation, other = await make(alice), await make(alice)
        call = await database_sync_to_async(remind)(conversation)
        uuid = str(conversation.uuid)
        async with Chat(conversation, session) as here, Chat(other, session) as there:
            for chat in (here, there):
                # It is open when it answers.
                await chat.command(type="hello")
                await chat.until("error")
            done = await database_sync_to_async(come_due)(call)
            await late_results.tell(done)
            told = {"type": "unread", "conversation": uuid, "count": 1}
            told |= {"text": "drink tea", "seq": done.call.late_result.seq}
            told |= {"kind": "reminder"}
            assert (await here.until("unread"))[-1] == told
            assert await there.event() == told
            # Again after a reconnect.
            await there.command(type="sync")
            assert (await there.until("unread"))[-1] == told
            await here.command(type="seen")
            for chat in (here, there):
                assert (await chat.until("unread"))[-1] == {
                    **told,
                    **{"count": 0, "seq": None, "text": "", "kind": ""},
                }

    async def test_a_page_gets_the_links(self, conversation, session, upstream):
        call = await database_sync_to_async(remind)(conversation)
        async with Chat(conversation, session, protocol="") as page:
            await page.html('id="unread"')
            done = await database_sync_to_async(come_due)(call)
            await late_results.tell(done)
            html = await page.html("Reminder: drink tea</a>")
            assert 'class="message reminder"' in html
