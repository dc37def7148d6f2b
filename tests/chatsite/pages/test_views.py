"""Pages and fragments: what each gives its owner, and that others get nothing."""

import html
import uuid

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from chatsite.live import fragments
from chatsite.turns import commands, lifecycle
from chatsite.turns.models import Turn
from memory import library, transcript
from memory.models import Conversation, Message
from tests.memory.scenes import plant, summarise

from ..scenes import HTMX, menu_of, page_of, signed_in, talk_in_turns, url

GET_VIEWS = (
    *("detail", "messages", "context", "transcript", "context-json", "summaries"),
)
POST_VIEWS = ("rename", "delete", "compact", "policy", "model")
LISTS = ("conversation-list", "conversation-create", "conversation-demo")


def queries_of(client, address):
    with CaptureQueriesContext(connection) as seen:
        assert client.get(address).status_code == 200
    return len(seen)


class TestAccess:
    @pytest.mark.parametrize("name", [*GET_VIEWS, *POST_VIEWS])
    def test_page_of_another_user_is_the_404_of_a_missing_one(
        self, conversation, bob, name
    ):
        client = signed_in(bob)
        send = client.post if name in POST_VIEWS else client.get
        foreign = send(url(name, conversation))
        missing = send(reverse(f"conversation-{name}", args=[uuid.uuid4()]))
        assert foreign.status_code == missing.status_code == 404
        assert foreign.content == missing.content
        assert Conversation.objects.filter(pk=conversation.pk).exists()

    @pytest.mark.parametrize("name", [*GET_VIEWS, *POST_VIEWS])
    def test_anonymous_user_is_sent_to_the_login_page(self, conversation, name):
        client = Client()
        send = client.post if name in POST_VIEWS else client.get
        answer = send(url(name, conversation))
        assert answer.status_code == 302
        assert answer.url.startswith(reverse("login"))

    def test_fragment_of_an_ended_session_redirects_to_the_login_page(
        self, conversation
    ):
        address = url("context", conversation)
        answer = Client().get(address, headers=HTMX)
        assert answer["HX-Redirect"] == reverse("login")
        assert answer.content == b""

    @pytest.mark.parametrize("name", LISTS)
    def test_list_needs_a_login(self, db, name):
        send = Client().get if name == "conversation-list" else Client().post
        assert send(reverse(name)).url.startswith(reverse("login"))

    @pytest.mark.parametrize("name", GET_VIEWS)
    def test_page_rejects_post(self, client, conversation, name):
        assert client.post(url(name, conversation)).status_code == 405

    @pytest.mark.parametrize("name", POST_VIEWS)
    def test_change_rejects_get(self, client, conversation, name):
        assert client.get(url(name, conversation)).status_code == 405
        assert Conversation.objects.get().title == "Trip to Kyoto"

    @pytest.mark.parametrize("name", POST_VIEWS)
    def test_change_needs_a_csrf_token(self, alice, conversation, name):
        strict = signed_in(alice, enforce_csrf_checks=True)
        answer = strict.post(url(name, conversation), {"title": "x"})
        assert answer.status_code == 403
        assert Conversation.objects.get().title == "Trip to Kyoto"

    @pytest.mark.parametrize("path", ["/c/none/", "/c/../admin", "/c/%00/", "/c/1/"])
    def test_odd_addresses_are_a_404(self, client, path):
        assert client.get(path).status_code == 404

    def test_page_forbids_browsers_to_cache_it(self, client, conversation):
        answer = client.get(url("detail", conversation))
        assert "no-store" in answer["Cache-Control"]

    def test_page_has_a_strict_csp(self, client, conversation):
        policy = client.get(url("detail", conversation))["Content-Security-Policy"]
        assert "unsafe" not in policy
        assert "default-src 'none'" in policy


class TestMessageMenu:
    def test_menu_offers_what_fits_the_message(self, client, conversation):
        talk_in_turns(conversation, "Hello")
        seq = conversation.messages.last().seq
        assert "Summarise up to here…" in menu_of(client, conversation, seq)
        conversation.messages.filter(seq=seq).update(excluded_at=timezone.now())
        menu = menu_of(client, conversation, seq)
        assert "Show to the model again" in menu
        assert "Summarise up to here…" not in menu

    def test_menu_of_a_running_turn_is_empty(self, client, conversation):
        sent = commands.submit_message(conversation, text="Hello", client_id="1")
        assert menu_of(client, conversation, sent.message.seq).strip() == ""

    def test_menu_is_its_owners(self, client, bob, conversation):
        talk_in_turns(conversation, "Hello")
        seq = conversation.messages.last().seq
        missing = url("message-menu", conversation, seq + 1)
        assert client.get(missing).status_code == 404
        foreign = url("message-menu", conversation, seq)
        assert signed_in(bob).get(foreign).status_code == 404


class TestList:
    def test_list_is_explained_when_empty(self, client):
        page = client.get("/").content.decode()
        assert "Watch the demo" in page
        assert "Two views of every conversation" in page

    def test_list_has_only_the_users_conversations(self, client, bob, conversation):
        transcript.create_conversation(bob, title="Secret of Bob")
        page = client.get("/").content.decode()
        assert "Trip to Kyoto" in page
        assert "Secret of Bob" not in page

    def test_list_searches_titles(self, client, alice, conversation):
        transcript.create_conversation(alice, title="Garden")
        page = client.get("/", {"q": "kyo"}).content.decode()
        assert "Trip to Kyoto" in page
        assert "Garden" not in page

    def test_list_is_a_fragment_for_htmx(self, client, conversation):
        answer = client.get("/", {"q": "kyo"}, headers=HTMX)
        assert b"<html" not in answer.content
        assert b"Trip to Kyoto" in answer.content

    @pytest.mark.parametrize(
        "query", ["\0", "x" * 5000, "%", "\ud800".encode("utf-8", "surrogatepass")]
    )
    def test_list_survives_odd_queries(self, client, conversation, query):
        assert client.get("/", {"q": query}).status_code == 200

    def test_list_escapes_titles(self, client, alice):
        transcript.create_conversation(alice, title="<img src=x onerror=alert(1)>")
        assert b"<img src=x" not in client.get("/").content


class TestCreate:
    def test_creation_redirects_to_the_conversation(self, client, alice):
        answer = client.post("/c/", {"title": "Plan", "preset": "langgraph"})
        made = Conversation.objects.get()
        assert answer.url == url("detail", made)
        assert (made.owner, made.title) == (alice, "Plan")
        assert made.get_policy().preset == "langgraph"

    def test_creation_needs_no_fields(self, client):
        client.post("/c/")
        assert Conversation.objects.get().get_policy().preset == "layered"

    def test_creation_sends_the_first_message(self, client):
        answer = client.post("/c/", {"first": "Plan a weekend."})
        made = Conversation.objects.get()
        assert answer.url == url("detail", made)
        assert made.title == made.messages.get().text == "Plan a weekend."
        assert made.turns.get().state == "queued"
        assert client.post("/c/", {"first": "  "}).status_code == 400
        assert Conversation.objects.count() == Message.objects.count() == 1

    @pytest.mark.parametrize(
        "fields",
        [
            {"preset": "none"},
            {"title": "x" * 201},
            {"title": "a\0b", "system_prompt": "Kept"},
            {"system_prompt": "Kept", "first": "a\0b"},
        ],
    )
    def test_creation_refuses_invalid_values_and_keeps_the_input(self, client, fields):
        answer = client.post("/c/", fields)
        assert answer.status_code == 400
        assert not Conversation.objects.exists()
        assert b'role="alert"></div>' not in answer.content
        assert fields.get("system_prompt", "") in answer.content.decode()

    def test_creation_ignores_unknown_fields(self, client, bob):
        client.post("/c/", {"owner": bob.pk, "model": "evil", "token_ratio": "9"})
        made = Conversation.objects.get()
        assert made.owner != bob
        assert (made.model, made.token_ratio) == ("", 1.0)

    def test_demo_is_started(self, client):
        answer = client.post("/demo/")
        made = Conversation.objects.get()
        assert answer.url == url("detail", made) + "?guide"
        # The page sends the others, each when the reply before it has ended.
        assert made.turns.count() == 1


class TestDetail:
    def test_page_shows_both_views(self, client, conversation):
        page = page_of(client, conversation)
        assert "You see" in page
        assert "The model sees" in page
        assert "Reply to: What is my budget?" in page
        assert "All 4 messages accounted for" in page
        assert page.count("mark-window") == 4

    def test_page_marks_compacted_messages_and_draws_the_divider(
        self, client, conversation
    ):
        summarise(conversation, 1, 2, text="They said hello.")
        page = page_of(client, conversation)
        assert page.count('mark-summary">Summarised (v1)') == 2
        assert page.count('mark-window">In full') == 2
        assert 'id="divider-1"' in page
        assert "#1–#2 → v1" in page
        assert page.count("They said hello.") == 4

    def test_page_shows_the_request_of_a_reply(self, client, conversation):
        page = client.get(url("detail", conversation), {"reply": 2}).content.decode()
        assert "As sent for reply #2" in page
        assert "Exactly what was sent" in page

    @pytest.mark.parametrize(
        "value", ["1", "99", "0", "-1", "x", "9" * 30, "9" * 5000, "\0"]
    )
    def test_page_of_an_unknown_reply_is_a_404(self, client, conversation, value):
        for name in ("detail", "context", "context-json"):
            answer = client.get(url(name, conversation), {"reply": value})
            assert answer.status_code == 404

    def test_page_shows_a_failed_turn_with_its_reason_and_a_retry(self, client, alice):
        made = transcript.create_conversation(alice)
        sent = commands.submit_message(made, text="Hi", client_id="1")
        claim = lifecycle.claim(made.pk)
        lifecycle.finish(
            claim, lifecycle.TurnResult(Turn.State.FAILED, "", error="timeout")
        )
        page = page_of(client, made)
        turn = page[page.index(f'data-turn="{sent.turn.pk}"') :].split(">", 1)[0]
        assert 'data-state="failed"' in turn
        assert "The model took too long to answer" in page
        assert 'value="retry"' in page

    def test_page_shows_the_saved_part_of_a_running_reply(self, client, alice):
        made = transcript.create_conversation(alice)
        sent = commands.submit_message(made, text="Hi", client_id="1")
        lifecycle.checkpoint(lifecycle.claim(made.pk), "Half a <reply>")
        page = page_of(client, made)
        assert f'id="turn-{sent.turn.pk}-tail">Half a &lt;reply&gt;</div>' in page
        assert 'value="stop"' in page

    def test_page_takes_the_same_number_of_queries_for_any_length(
        self, client, conversation
    ):
        address = url("detail", conversation)
        client.get(address)
        few = queries_of(client, address)
        talk_in_turns(conversation, *(f"Text {n}" for n in range(12)))
        assert queries_of(client, address) <= few + 1


class TestEarlierMessages:
    def test_earlier_messages_are_the_turns_before_one(self, client, conversation):
        last = conversation.turns.order_by("-pk").first()
        answer = client.get(url("messages", conversation), {"before": last.pk})
        assert b"Reply to: Hello" in answer.content
        assert b"What is my budget?" not in answer.content

    @pytest.mark.parametrize("value", ["0", "-5", "x", str(2**70), "\0"])
    def test_earlier_messages_of_an_unknown_turn_are_a_404(
        self, client, conversation, value
    ):
        answer = client.get(url("messages", conversation), {"before": value})
        assert answer.status_code == 404


class TestContext:
    def test_context_is_a_fragment(self, client, conversation):
        page = client.get(url("context", conversation)).content.decode()
        assert "<html" not in page
        assert "Next turn" in page
        assert '<option value="4"' in page

    def test_context_marks_every_number_as_estimated_or_reported(
        self, client, conversation
    ):
        address = url("context", conversation)
        assert "estimated" in client.get(address).content.decode()
        shown = client.get(address, {"reply": 4}).content.decode()
        assert "<strong>40</strong>" in shown
        assert "reported" in shown

    def test_context_reports_a_hash_that_does_not_match(self, client, conversation):
        plant(Message.objects.get(seq=1), text="Tampered")
        page = client.get(url("context", conversation), {"reply": 4})
        assert b"hash does not match" in page.content

    def test_context_offers_to_compact_again_after_failures(self, client, conversation):
        Conversation.objects.update(compaction_failures=3)
        page = client.get(url("context", conversation))
        assert b"Try again" in page.content


class TestChanges:
    def test_title_is_changed(self, client, conversation):
        answer = client.post(url("rename", conversation), {"title": "New"})
        assert answer.status_code == 302
        renamed = Conversation.objects.get()
        assert (renamed.title, renamed.title_set_by) == ("New", "user")

    def test_title_change_for_htmx_is_shown_in_both_places(self, client, conversation):
        answer = client.post(
            url("rename", conversation),
            {"title": "New"},
            headers=HTMX,
        )
        assert answer.content.count(b">New<") == 2
        assert b"hx-swap-oob" in answer.content

    @pytest.mark.parametrize("title", ["", "  ", "\u200b\u00ad", "x" * 201, "a\0b"])
    def test_invalid_title_is_refused(self, client, conversation, title):
        answer = client.post(
            url("rename", conversation),
            {"title": title},
            headers=HTMX,
        )
        assert b'role="alert"' in answer.content
        assert Conversation.objects.get().title == "Trip to Kyoto"

    def test_invisible_text_is_neither_title_nor_message(self, client, alice):
        refused = client.post("/c/", {"title": "Kept", "first": "\u200b\u202e\u00ad"})
        assert refused.status_code == 400
        client.post("/c/", {"title": "\u2060"})
        made = Conversation.objects.get(owner=alice)
        assert (made.title, made.title_set_by) == ("", "")

    def test_deletion_erases_everything_of_a_conversation(self, client, conversation):
        summarise(conversation, 1, 2)
        commands.submit_message(conversation, text="Waiting", client_id="w")
        assert client.post(url("delete", conversation)).url == "/"
        assert client.get(url("detail", conversation)).status_code == 404
        Conversation.objects.update(deleted_at=timezone.now() - 2 * library.UNDO)
        library.purge_deleted()
        assert not Conversation.objects.exists()
        assert not Message.objects.exists()

    @pytest.mark.django_db(transaction=True)
    def test_compaction_can_be_tried_again(self, conversation, alice):
        Conversation.objects.update(compaction_failures=3)
        signed_in(alice).post(url("compact", conversation))
        assert Conversation.objects.get().compaction_failures == 0


def test_health_check_answers_ok(db):
    answer = Client().get("/healthz")
    assert (answer.status_code, answer.content) == (200, b"ok")


def test_fragments_for_the_socket_render_without_a_request(conversation):
    html = "".join(fragments.LivePage().sync(conversation))
    assert html.count('class="turn"') == 2
    assert "csrf" not in html


class TestPolicy:
    def post(self, client, conversation, **fields):
        return client.post(f"/c/{conversation.uuid}/policy/", fields)

    def test_policy_form_changes_the_policy(self, client, conversation):
        overrides = '{"keep": ["messages", 4]}'
        answer = self.post(
            client, conversation, preset="langgraph", overrides=overrides
        )
        assert answer.status_code == 302
        conversation.refresh_from_db()
        assert conversation.policy == {"preset": "langgraph", "keep": ["messages", 4]}

    @pytest.mark.parametrize(
        ("overrides", "named"),
        [
            ('{"trigger": ["fraction", 1.5]}', "1.5"),
            ('{"trigger": ["fraction", 0]}', "0"),
            ('{"trigger": ["tokens", -5]}', "-5"),
            ('{"trigger": ["tokens", true]}', "True"),
            ('{"trigger": ["tokens", 1000.5]}', "1000.5"),
            ('{"trigger": ["words", 5]}', "words"),
            ('{"trigger": {}}', "{}"),
            (
                '{"trigger": ["messages", 5], "keep": ["messages", 5]}',
                "keep 5 messages",
            ),
            ('{"speed": 3}', "speed"),
            ("[1]", "JSON object"),
            ("{bad", "valid JSON"),
        ],
    )
    def test_a_wrong_value_is_named_and_changes_nothing(
        self, client, conversation, overrides, named
    ):
        answer = self.post(client, conversation, preset="layered", overrides=overrides)
        assert answer.status_code == 422
        text = html.unescape(answer.content.decode())
        assert named in text
        assert overrides in text
        before = conversation.policy
        conversation.refresh_from_db()
        assert conversation.policy == before
