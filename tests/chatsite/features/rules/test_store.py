"""Rules of a conversation as they are kept: offered, confirmed, replaced, dismissed."""

import random

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chatsite.features.rules import services, store
from chatsite.features.rules.models import Rule
from memory import actions, context, transcript
from memory.engine.rules import choice
from memory.models import Conversation
from tests.memory.scenes import ask, reply_to

from .scenes import confirm_rule, state_rule

pytestmark = pytest.mark.django_db(transaction=True)

RULES = (
    "Always answer in rhyme & <tags>.",
    "I'm allergic to peanuts.",
    "以后都用中文回答我。",
    "Never use emojis.",
)
ROOM = 1000


@pytest.fixture
def chat(alice):
    return transcript.create_conversation(alice)


@pytest.fixture
def keeping(alice):
    return transcript.create_conversation(alice, policy={"rules": "keep"})


def states(conversation):
    rows = store.with_rule_words(conversation.rules.order_by("pk"))
    return list(rows.values_list("words", "state"))


def standing(conversation):
    return [rule.block.text for rule in store.list_standing_rules(conversation)]


class TestDetection:
    def test_a_rule_is_offered(self, chat):
        ask(chat, f"Hello. {RULES[0]}")
        assert states(chat) == [(RULES[0], "offered")]
        assert store.list_standing_rules(chat) == []

    def test_rule_is_kept_by_setting(self, keeping):
        ask(keeping, RULES[3])
        assert states(keeping) == [(RULES[3], "kept")]

    def test_detection_is_off_by_setting(self, alice):
        off = transcript.create_conversation(alice, policy={"rules": "off"})
        ask(off, RULES[0])
        assert states(off) == []

    def test_replies_state_no_rules(self, keeping):
        reply_to(ask(keeping, "Hello"), RULES[0])
        assert states(keeping) == []

    def test_the_same_message_twice_states_it_once(self, keeping):
        for _ in range(2):
            transcript.append_user_message(keeping, text=RULES[0], client_id="a")
        assert len(states(keeping)) == 1

    def test_a_message_without_rules_costs_no_statement_more(self, alice):
        counts = []
        for mode in ("off", "keep"):
            made = transcript.create_conversation(alice, policy={"rules": mode})
            with CaptureQueriesContext(connection) as queries:
                transcript.append_user_message(made, text="Hello", client_id="a")
            counts.append(len(queries))
        assert counts[0] == counts[1]

    def test_later_words_replace_it(self, keeping):
        for text in ("Always use bullet points.", "Call me Sam.", "Call me Kim."):
            reply_to(ask(keeping, text), "Yes.")
        ask(keeping, "Forget the bullet points.")
        assert states(keeping) == [
            ("Always use bullet points.", "replaced"),
            ("Call me Sam.", "replaced"),
            ("Call me Kim.", "kept"),
        ]

    def test_a_row_that_was_read_before_a_rule_was_stated_is_no_excuse(self, chat):
        before = Conversation.objects.get(pk=chat.pk)
        state_rule(chat, "Always use bullet points.")
        transcript.append_user_message(
            before, text="Forget the bullet points.", client_id="b"
        )
        assert [state for _, state in states(chat)] == ["replaced"]

    def test_offered_rule_replaces_nothing_before_it_is_confirmed(self, chat):
        state_rule(chat, "Call me Sam.")
        reply_to(ask(chat, "Call me Kim."), "Yes.")
        assert [state for _, state in states(chat)] == ["confirmed", "offered"]
        confirm_rule(chat)
        assert [state for _, state in states(chat)] == ["replaced", "confirmed"]
        assert chat.rules.first().replaced_by == chat.rules.last()


class TestDecisions:
    def test_other_words_take_its_place(self, chat):
        state_rule(chat, RULES[0], text="Answer in couplets.")
        assert standing(chat) == ["Answer in couplets."]

    def test_a_dismissed_rule_leaves_and_can_come_back(self, chat):
        state_rule(chat, RULES[0])
        rule = chat.rules.get()
        services.set_rule(chat, rule.pk, Rule.State.DISMISSED)
        assert (standing(chat), chat.rule_count) == ([], 0)
        services.confirm_rule(chat, rule.pk, room=ROOM)
        assert standing(chat) == [RULES[0]]

    def test_a_message_that_the_model_does_not_see_has_no_rules(self, chat):
        message = state_rule(chat, RULES[0])
        actions.exclude_messages(chat, [message.seq])
        assert standing(chat) == []
        actions.include_messages(chat, [message.seq])
        assert standing(chat) == [RULES[0]]
        transcript.supersede_messages(chat, message.seq)
        assert standing(chat) == []

    @pytest.mark.parametrize("text", ["", "x" * 301, "half \ud800"])
    def test_words_that_can_not_be_sent_are_refused(self, chat, text):
        ask(chat, RULES[0])
        with pytest.raises((actions.ActionError, transcript.TextError)):
            confirm_rule(chat, text=text)

    def test_rules_beyond_the_room_cannot_be_confirmed(self, chat):
        state_rule(chat, RULES[0])
        ask(chat, RULES[1])
        rule = chat.rules.latest("pk")
        with pytest.raises(actions.ActionError, match="no room"):
            services.confirm_rule(chat, rule.pk, room=20)
        rule.refresh_from_db()
        assert rule.state == "offered"

    def test_a_rule_has_the_room_of_the_one_that_it_replaces(self, chat):
        state_rule(chat, "Call me Sam.")
        [rule] = store.list_standing_rules(chat)
        room = choice.make_rule_counter(context.conversation_counter(chat))(rule.block)
        ask(chat, "Call me Kim.")
        services.confirm_rule(chat, chat.rules.latest("pk").pk, room=room)
        assert [state for _, state in states(chat)] == ["replaced", "confirmed"]

    def test_rule_of_another_conversation_is_not_found(self, chat, keeping):
        ask(keeping, RULES[0])
        with pytest.raises(actions.ActionError):
            services.set_rule(chat, keeping.rules.get().pk, Rule.State.OFFERED)


class TestBounds:
    def test_thousands_of_rules_leave_a_few(self, keeping):
        message = ask(keeping, RULES[0])
        Rule.objects.bulk_create(
            Rule(
                conversation=keeping,
                message=message,
                start=n,
                end=n + 9,
                state=random.Random(n).choice(["kept", "replaced", "offered"]),
            )
            for n in range(1, 1_001)
        )
        store.bound_rules(keeping)
        assert keeping.rules.count() == store.MOST_UNCONFIRMED + store.MOST_PAST
        with CaptureQueriesContext(connection) as queries:
            assert 0 < len(store.list_standing_rules(keeping)) < store.MOST_UNCONFIRMED
        assert len(queries) == 1

    def test_rules_have_a_limit(self, chat, monkeypatch):
        monkeypatch.setattr(services, "MOST_CONFIRMED", 2)
        for text in RULES[:2]:
            state_rule(chat, text)
        ask(chat, RULES[3])
        with pytest.raises(actions.ActionError, match="no room"):
            confirm_rule(chat)


def test_an_own_list_begins_a_conversation(alice):
    made = transcript.create_conversation(alice, own_rules=["Be brief.", "No jargon."])
    assert (standing(made), made.rule_count) == (["Be brief.", "No jargon."], 2)
