"""Facts about a user: offered, kept, sent in other conversations with their source,
replaced, erased, and gone with their message."""

import json
import re

import pytest
from django.core.serializers.json import DjangoJSONEncoder
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from chatsite.accounts import preferences
from chatsite.features.facts import audit, services, store
from chatsite.features.facts.models import Fact
from chatsite.features.importing.exporting.thread import export_thread
from chatsite.features.importing.files import own
from chatsite.features.sharing.link_contents import is_request_shown
from chatsite.features.sharing.models import Share
from chatsite.pages.presenters import context_pane
from chatsite.turns.models import Preferences
from memory import actions, bundle, context, library, transcript
from memory.models import Prompt
from memory.transcript import ActionError
from memory.view import rebuilding
from tests.memory.scenes import ask, record, reply_to

from ...scenes import talk_in_turns
from .scenes import ON, keep_fact, start, state_fact

pytestmark = pytest.mark.django_db(transaction=True)

WORDS = "I live in Zurich"


@pytest.fixture
def chat(alice):
    return start(alice)


@pytest.fixture
def other(alice):
    return start(alice)


def states(owner):
    rows = store.facts_of(owner.pk).order_by("pk")
    return list(rows.values_list("words", "state"))


def sent(conversation):
    section = context.build_request_context(conversation).context.get_section("facts")
    return section[0].text if section else ""


def send(conversation):
    """A turn, and its request as it is stored."""
    message = ask(conversation, "Where should I eat?")
    built = context.build_request_context(conversation, newest=message)
    return record(conversation, built, reply_to(message, "At home."))


class TestLearning:
    def test_a_fact_is_offered_once(self, chat, other, alice):
        state_fact(chat, f"Hello. {WORDS}. And you?")
        state_fact(other, f"{WORDS}.")
        assert states(alice) == [(WORDS, "offered")]
        assert sent(other) == ""

    @pytest.mark.parametrize(
        ("operator", "user", "expected"),
        [
            ("on", "", "on"),
            ("off", "", "off"),
            ("on", "off", "off"),
            ("off", "learn", "learn"),
        ],
    )
    def test_new_conversations_begin_as_the_operator_and_the_user_say(
        self, alice, settings, operator, user, expected
    ):
        settings.FACTS = operator
        Preferences.objects.create(user=alice, facts=user)
        made = transcript.create_conversation(alice, **preferences.values_for(alice))
        state_fact(made, f"{WORDS}.")
        assert made.get_policy().facts == expected
        assert len(states(alice)) == (expected in ("on", "learn"))
        # Nothing is sent before an answer.
        assert sent(made) == ""
        assert sent(start(alice)) == ""

    def test_dismissal_stays_after_its_message_is_hidden(self, chat, other, alice):
        message = state_fact(chat, f"{WORDS}.")
        services.dismiss_fact(alice.pk, Fact.objects.get().pk)
        actions.exclude_messages(chat, [message.seq])
        state_fact(other, f"{WORDS}.")
        assert states(alice) == [(WORDS, "dismissed")]

    @pytest.mark.parametrize("policy", ["off", "use"])
    def test_learning_is_off_by_choice(self, alice, policy):
        state_fact(transcript.create_conversation(alice), f"{WORDS}.")
        state_fact(start(alice, facts=policy), f"{WORDS}.")
        assert not states(alice)

    def test_a_temporary_conversation_teaches_and_uses_none(self, chat, alice):
        keep_fact(chat, f"{WORDS}.")
        made = transcript.create_conversation(alice, policy=ON, temporary=True)
        state_fact(made, "I have two dogs.")
        assert states(alice) == [(WORDS, "kept")]
        assert sent(made) == ""

    def test_words_of_the_user_alone_are_facts(self, chat, alice):
        message = ask(chat, "Who are you?")
        reply_to(message, "I live in Bern. I am a nurse.")
        assert not states(alice)

    def test_facts_of_a_user_are_few(self, chat, alice, monkeypatch):
        monkeypatch.setattr(store, "MOST_OFFERED", 2)
        for pet in ("dog", "cat", "horse"):
            state_fact(chat, f"I have a {pet}.")
        assert [words for words, _ in states(alice)] == [
            "I have a cat",
            "I have a horse",
        ]

    def test_facts_beyond_the_limit_are_not_kept(self, chat, alice, monkeypatch):
        monkeypatch.setattr(services, "MOST_KEPT", 1)
        keep_fact(chat, "I have a dog.")
        with pytest.raises(ActionError, match="memory is full"):
            keep_fact(chat, "I have a cat.")
        assert states(alice)[1] == ("I have a cat", "offered")


class TestUse:
    def test_a_kept_one_is_sent_in_other_conversations(self, chat, other):
        keep_fact(chat, "I live in <b>Zurich</b> & like it.")
        assert "I live in &lt;b&gt;Zurich&lt;/b&gt; &amp; like it</fact>" in sent(other)
        assert sent(chat) == ""

    def test_facts_of_another_user_are_not_sent(self, chat, bob):
        keep_fact(chat, f"{WORDS}.")
        assert sent(start(bob)) == ""

    @pytest.mark.parametrize("policy", ["off", "learn"])
    def test_a_conversation_can_go_without(self, chat, alice, policy):
        keep_fact(chat, f"{WORDS}.")
        row = start(alice, facts=policy)
        ask(row)
        with CaptureQueriesContext(connection) as asked:
            assert sent(row) == ""
        assert ("facts_fact" in str(asked.captured_queries)) == (policy == "learn")

    @pytest.mark.parametrize("policy", ["on", "learn"])
    def test_fact_kept_here_is_sent_in_its_conversation(self, alice, other, policy):
        chat = start(alice, facts=policy)
        fact = keep_fact(chat, f"{WORDS}.", is_local=True)
        assert WORDS in sent(chat)
        assert sent(other) == ""
        services.keep_fact(alice.pk, fact.pk, text="I live in Bern")
        assert "I live in Bern" in sent(chat)
        assert states(alice) == [("I live in Bern", "here")]
        # One that is kept elsewhere, and contradicts it, replaces nothing here.
        keep_fact(other, "I live in Oslo.")
        assert "I live in Bern" in sent(chat)
        services.offer_fact(alice.pk, fact.pk)
        assert "Bern" not in sent(chat)

    def test_the_oldest_leave_first_where_there_is_no_room(self, chat, other):
        keep_fact(chat, "I have a dog.")
        keep_fact(chat, "I have a cat.")
        built = context.build_request_context(other, limit=600)
        text = built.context.get_section("facts")[0].text
        assert "cat" in text
        assert "dog" not in text

    def test_the_pane_links_the_source(self, chat, other, client):
        fact = keep_fact(chat, f"{WORDS}.")
        ask(other)
        [section] = [
            each
            for each in context_pane.model_view(other).sections
            if each.kind == "facts"
        ]
        assert section.rules[0].place == f"{chat.uuid}#{fact.message.seq}"
        client.force_login(chat.owner)
        page = client.get(reverse("conversation-detail", args=[other.uuid]))
        assert f"{chat.uuid}/?at={fact.message.seq}" in page.content.decode()


class TestRequests:
    def test_draft_beside_facts_is_loaded_when_it_is_sent(self, chat, other):
        assert context_pane.model_view(other, draft="Where?").newest
        keep_fact(chat, f"{WORDS}.")
        assert not context_pane.model_view(other, draft="Where?").newest

    def test_request_is_rebuilt_after_its_facts_have_changed(self, chat, other, alice):
        fact = keep_fact(chat, f"{WORDS}.")
        call = send(other)
        assert "facts" in call.refs
        services.keep_fact(alice.pk, fact.pk, text="I live in Bern")
        keep_fact(chat, "I moved to Oslo last year.")
        assert rebuilding.verify_context(call)
        assert not [*audit.find_bad_facts()]

    @pytest.mark.parametrize("how", ["erase", "delete", "reword"])
    def test_erased_words_are_erased_from_it(self, chat, other, alice, how):
        fact = keep_fact(chat, f"{WORDS}.")
        call = send(other)
        if how == "reword":
            services.keep_fact(alice.pk, fact.pk, text="I live in Bern")
            send(other)
        if how == "erase":
            services.erase_fact(alice.pk, fact.pk)
        else:
            actions.delete_message(chat, fact.message.seq)
        assert not Prompt.objects.filter(text__contains="I live in").exists()
        assert not rebuilding.verify_context(call)
        assert rebuilding.is_erased(call)
        assert not [*audit.find_bad_facts()]

    def test_a_conversation_takes_its_facts_along(self, chat, other, alice):
        keep_fact(chat, f"{WORDS}.")
        call = send(other)
        library.erase_conversation(chat)
        assert not states(alice)
        assert not Prompt.objects.filter(text__contains=WORDS).exists()
        assert rebuilding.is_erased(call)

    def test_facts_are_in_no_link(self, chat, other):
        keep_fact(chat, f"{WORDS}.")
        share = Share(conversation=other, last_seq=9, created_at=timezone.now())
        assert not is_request_shown(share, send(other))

    def test_an_export_has_what_it_needs(self, chat, other, bob):
        keep_fact(chat, f"{WORDS}.")
        send(other)
        file = json.loads(json.dumps(export_thread(other), cls=DjangoJSONEncoder))
        draft = own.read_export(file, bob.pk)
        made = transcript.create_conversation(bob, policy=draft.policy)
        bundle.write_bundle(made, draft.bundle)
        assert rebuilding.verify_context(made.model_calls.get(purpose="reply"))


class TestChanges:
    def test_a_later_one_replaces_it_and_can_be_undone(self, chat, alice):
        old = keep_fact(chat, f"{WORDS}.")
        new = keep_fact(chat, "I moved to Oslo last year.")
        old.refresh_from_db()
        assert (old.state, old.replaced_by) == ("replaced", new)
        assert services.keep_fact(alice.pk, old.pk) == ["I moved to Oslo last year"]
        new.refresh_from_db()
        assert new.state == "replaced"

    def test_an_older_offer_does_not_replace_a_later_one(self, chat, alice):
        state_fact(chat, f"{WORDS}.")
        old = Fact.objects.get()
        keep_fact(chat, "I moved to Oslo last year.")
        with pytest.raises(ActionError, match="You said later"):
            services.keep_fact(alice.pk, old.pk)

    @pytest.mark.parametrize("how", ["delete", "hide", "trash"])
    def test_fact_without_its_message_is_struck_through_and_not_sent(
        self, chat, other, alice, client, how
    ):
        fact = keep_fact(chat, f"{WORDS}.")
        if how == "delete":
            actions.delete_message(chat, fact.message.seq)
        elif how == "hide":
            actions.exclude_messages(chat, [fact.message.seq])
        else:
            library.delete_conversation(chat)
        assert sent(other) == ""
        client.force_login(alice)
        page = client.get(reverse("facts")).content.decode()
        assert "<s " in page
        assert (WORDS in page) == (how != "delete")
        with pytest.raises(ActionError, match="deleted or hidden"):
            services.keep_fact(alice.pk, fact.pk)

    @pytest.mark.parametrize("text", ["", " ", "x" * 201, "a\x00b"])
    def test_bad_words_change_nothing(self, chat, alice, client, text):
        fact = keep_fact(chat, f"{WORDS}.")
        client.force_login(alice)
        address = reverse("fact-change", args=[fact.pk, "reword"])
        page = client.post(address, {"text": text}, follow=True)
        assert "form-error" in page.content.decode()
        assert states(alice) == [(WORDS, "kept")]


class TestPage:
    def test_fact_is_kept_reworded_and_erased(self, chat, alice, client):
        message = state_fact(chat, f"{WORDS}.")
        fact = message.facts.get()
        client.force_login(alice)
        for name, values, state in (
            ("keep", {}, [(WORDS, "kept")]),
            ("reword", {"text": "I live in Bern"}, [("I live in Bern", "kept")]),
            ("erase", {}, []),
        ):
            address = reverse("fact-change", args=[fact.pk, name])
            assert client.post(address, values).status_code == 302
            assert states(alice) == state
        assert not client.get(reverse("facts")).context["kept"]

    def test_fact_is_decided_below_the_message(self, chat, alice, client):
        talk_in_turns(chat, f"{WORDS}.")
        fact = Fact.objects.get()
        client.force_login(alice)
        page = client.get(reverse("conversation-detail", args=[chat.uuid]))
        assert "Remember this?" in page.content.decode()
        address = reverse("memory-fact", args=[chat.uuid, fact.pk, "remember"])
        said = client.post(address, headers={"HX-Request": "true"})
        assert "Remembered" in said.content.decode()
        assert states(alice) == [(WORDS, "kept")]

    def test_undo_offers_it_again_and_keeps_what_it_had_replaced(
        self, chat, alice, client
    ):
        keep_fact(chat, f"{WORDS}.")
        new = keep_fact(chat, "I moved to Oslo last year.")
        client.force_login(alice)
        address = reverse("memory-fact", args=[chat.uuid, new.pk, "offer-fact"])
        client.post(address, headers={"HX-Request": "true"})
        assert [state for _, state in states(alice)] == ["kept", "offered"]

    def test_fact_is_edited_in_the_pane_and_undone(self, chat, other, alice, client):
        old = keep_fact(chat, "I moved to Oslo last year.")
        fact = keep_fact(chat, "I have two dogs.")
        talk_in_turns(other, "Hello")
        client.force_login(alice)
        edit = reverse("memory-fact-edit", args=[other.uuid, fact.pk])
        pane = reverse("conversation-context", args=[other.uuid])
        assert edit in client.get(pane).content.decode()
        assert "I have two dogs" in client.get(edit).content.decode()
        rows = Fact.objects.order_by("pk").values_list("text", "state", "worded_at")
        before = list(rows)
        undo = self.reword(client, other, fact, text="I live in Bern")
        assert states(alice)[0] == ("I moved to Oslo last year", "replaced")
        assert "I live in Bern" in sent(other)
        assert context_pane.model_view(other).desk.changes == 1
        redo = self.reword(client, other, fact, undo=undo)
        assert list(rows.all()) == before
        # Not from an old tab, and not what was erased.
        self.reword(client, other, fact, undo=redo)
        self.reword(client, other, fact, text="I live in Basel")
        address = reverse("memory-fact-reword", args=[other.uuid, fact.pk])
        for sent_again in (undo, f"{redo}x"):
            said = client.post(address, {"undo": sent_again})
            assert said.status_code == 409
        services.erase_fact(alice.pk, fact.pk)
        assert client.post(address, {"undo": redo}).status_code == 409
        assert client.get(edit).status_code == 404
        old.refresh_from_db()
        assert states(alice) == [("I moved to Oslo last year", "replaced")]

    @staticmethod
    def reword(client, conversation, fact, **fields):
        address = reverse("memory-fact-reword", args=[conversation.uuid, fact.pk])
        said = client.post(address, fields, headers={"HX-Request": "true"})
        return re.search(r'name="undo" value="([^"]+)"', said.content.decode())[1]

    def test_fact_that_is_not_kept_is_not_edited(self, chat, alice, bob, client):
        fact = keep_fact(chat, f"{WORDS}.", is_local=True)
        client.force_login(bob)
        theirs = start(bob)
        address = reverse("memory-fact-reword", args=[theirs.uuid, fact.pk])
        assert client.post(address, {"text": "Mine"}).status_code == 409
        # One that is no longer kept here is not kept everywhere by an old tab.
        services.offer_fact(alice.pk, fact.pk)
        with pytest.raises(ActionError, match="no longer exists"):
            services.reword_fact(alice.pk, fact.pk, text="I live in Bern")
        assert states(alice) == [(WORDS, "offered")]

    def test_undo_needs_room_in_the_memory(self, chat, alice, monkeypatch):
        keep_fact(chat, "I moved to Oslo last year.")
        fact = keep_fact(chat, "I have two dogs.")
        undo, replaced = services.reword_fact(alice.pk, fact.pk, text=WORDS)
        assert replaced == ["I moved to Oslo last year"]
        monkeypatch.setattr(services, "MOST_KEPT", 1)
        with pytest.raises(ActionError, match="memory is full"):
            services.reword_fact(alice.pk, fact.pk, undo=undo)

    def test_fact_of_another_user_cannot_be_changed(self, chat, bob, client):
        fact = keep_fact(chat, f"{WORDS}.")
        client.force_login(bob)
        client.post(reverse("fact-change", args=[fact.pk, "erase"]))
        assert Fact.objects.filter(pk=fact.pk, state="kept").exists()
        assert WORDS not in client.get(reverse("facts")).content.decode()

    def test_an_unknown_act_is_none(self, chat, alice, client):
        fact = keep_fact(chat, f"{WORDS}.")
        client.force_login(alice)
        address = reverse("fact-change", args=[fact.pk, "x"])
        assert client.post(address).status_code == 404

    def test_the_download_of_an_account_has_them(self, chat, alice):
        fact = keep_fact(chat, f"{WORDS}.")
        [row] = services.describe_facts(alice)
        assert (row["text"], row["message"]) == (WORDS, fact.message.seq)
