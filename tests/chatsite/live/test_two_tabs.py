"""Two tabs change the same thing: the later one is shown the earlier change, no typed
text is lost, and sent once more it counts.
"""

import html
import json
import re

import pytest

from chatsite.protocol.errors import CommandError
from chatsite.turns import commands
from memory import versions
from tests.memory.scenes import summarise

from ..scenes import HTMX, answer, propose, talk_in_turns, url

pytestmark = pytest.mark.django_db(transaction=True)


def post(client, address, **values):
    page = client.post(address, values, headers=HTMX).content.decode()
    return html.unescape(page)


def hidden(page, name):
    found = re.search(rf'name="{name}"\s+value="(.*?)"\s*(?:id|hx|>)', page, re.DOTALL)
    return found[1]


def told(page):
    return re.search(r'role="alert">([^<]+)<', page)[1]


class TestTitle:
    def test_the_later_name_is_told_of_the_first(self, client, conversation):
        send = url("rename", conversation)
        post(client, send, title="First", seen="Trip to Kyoto")
        page = post(client, send, title="Second", seen="Trip to Kyoto")
        assert "“First”" in told(page)
        conversation.refresh_from_db()
        assert conversation.title == "First"
        post(client, send, title="Second", seen=hidden(page, "seen"))
        conversation.refresh_from_db()
        assert conversation.title == "Second"

    def test_automatic_title_does_not_conflict_with_a_new_one(
        self, client, conversation
    ):
        type(conversation).objects.update(title="Made up", title_set_by="auto")
        page = post(client, url("rename", conversation), title="Mine", seen="Hello")
        assert "alert" not in page
        conversation.refresh_from_db()
        assert (conversation.title, conversation.title_set_by) == ("Mine", "user")

    def test_title_conflict_is_reported_without_htmx(self, client, conversation):
        values = {"title": "Second", "seen": "Not that"}
        answered = client.post(url("rename", conversation), values)
        assert answered.status_code == 409
        assert "Trip to Kyoto" in answered.content.decode()


class TestPolicy:
    @pytest.fixture
    def seen(self, conversation):
        return json.dumps(conversation.policy)

    def policy_of(self, conversation):
        conversation.refresh_from_db()
        return conversation.policy.get("preset")

    def test_the_later_settings_are_told_of_the_first(self, client, conversation, seen):
        send = url("policy", conversation)
        post(client, send, preset="langgraph", seen=seen)
        mine = {"preset": "guide", "overrides": '{"max_summary_tokens": 77}'}
        page = post(client, send, **mine, seen=seen)
        assert "Apply again to overwrite" in told(page)
        assert '"max_summary_tokens": 77' in page
        assert self.policy_of(conversation) == "langgraph"
        post(client, send, **mine, seen=hidden(page, "seen"))
        assert self.policy_of(conversation) == "guide"

    def test_a_change_is_said_and_undone(self, client, conversation, seen):
        page = post(client, url("policy", conversation), preset="guide", seen=seen)
        assert "Memory is now “" in page
        assert "null</textarea>" not in page
        undo = {name: hidden(page, name) for name in ("policy",)}
        now = re.findall(r'name="seen" value="(.*?)">', page, re.DOTALL)[-1]
        back = post(client, url("policy-undo", conversation), **undo, seen=now)
        assert "Undo" in back
        assert json.dumps(self.reread(conversation)) == seen

    def reread(self, conversation):
        conversation.refresh_from_db()
        return conversation.policy

    @pytest.mark.parametrize(
        "values",
        [
            {"policy": '{"preset": "layered"}', "seen": '{"preset": "guide"}'},
            {"policy": '{"keep": 3}', "seen": ""},
            *({"policy": text, "seen": ""} for text in ("", "[1]", "{x", "null")),
        ],
    )
    def test_an_undo_that_can_not_be_changes_nothing(
        self, client, conversation, seen, values
    ):
        page = post(client, url("policy-undo", conversation), **values)
        assert told(page)
        assert json.dumps(self.reread(conversation)) == seen


class TestSummary:
    def rewrite(self, client, conversation, text, **values):
        address = f"/c/{conversation.uuid}/memory/summaries/1/rewrite/"
        return post(client, address, text=text, **values)

    def in_force(self, conversation):
        return [row.text for row in versions.active_summaries(conversation)]

    def test_the_later_text_can_be_put_over_the_first(self, client, conversation):
        summarise(conversation, 1, 2)
        self.rewrite(client, conversation, "First.", seen=1)
        page = self.rewrite(client, conversation, "Second.", seen=1)
        assert "v2 has replaced v1" in told(page)
        assert self.in_force(conversation) == ["First."]
        self.rewrite(client, conversation, "Second.", seen=hidden(page, "seen"))
        assert self.in_force(conversation) == ["Second."]

    def test_a_summary_of_other_messages_is_left_alone(self, client, conversation):
        first = summarise(conversation, 1, 2)
        summarise(conversation, 1, 4, replaces=[first])
        page = self.rewrite(client, conversation, "Mine.", seen=1)
        assert "Copy your text" in told(page)
        assert 'name="seen"' not in page

    def test_own_words_outlive_another_proposal(self, client, conversation):
        page = propose(client, conversation, 2)
        signature, proposed = (
            hidden(page, "signature"),
            re.search(r"required>([^<]*)<", page)[1],
        )
        same = propose(client, conversation, 2, signature=signature, text=proposed)
        assert "What you had written" not in same
        again = propose(
            client, conversation, 2, signature=signature, text="I wrote this."
        )
        assert ">I wrote this.</textarea>" in again
        assert ">I wrote this.</textarea>" in propose(
            client, conversation, 2, typed="I wrote this."
        )


class TestMessage:
    def test_the_later_edit_names_what_took_its_place(self, conversation):
        commands.edit_message(conversation, seq=3, text="First", client_id="one")
        answer(conversation, "Yes")
        talk_in_turns(conversation, "And more")
        with pytest.raises(CommandError, match="#3 was edited.*is #5 now") as refused:
            commands.edit_message(conversation, seq=3, text="Second", client_id="two")
        assert (refused.value.code, refused.value.seq) == ("superseded", 5)
        commands.edit_message(conversation, seq=5, text="Second", client_id="two")
        kept = conversation.messages.filter(superseded_at=None, role="user")
        assert [row.text for row in kept] == ["Hello", "Second"]
