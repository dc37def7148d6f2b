"""Shared pages as strangers get them, what never reaches them, the owner's dialog."""

import re
from io import BytesIO

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from PIL import Image, ImageDraw

from bench.long_conversation import make
from chatsite.features.importing.exporting.account import _describe_account
from chatsite.features.importing.exporting.thread import dump_export
from chatsite.features.rules.store import begin_with_rules
from chatsite.features.sharing import presenter
from chatsite.features.sharing.link_contents import shown_replies
from chatsite.features.sharing.models import Share
from chatsite.features.sharing.pace import pace, wait_for_address
from chatsite.features.sharing.services import create_share, find_share, revoke_share
from chatsite.ops import pace as pacing
from chatsite.pages import parts
from chatsite.turns import commands
from memory import actions, library, transcript
from tests.memory.scenes import ask, reply_to

from ...pages.test_attachments import LONG, send
from ...scenes import HTMX, Use, answer, signed_in, submit, talk_in_turns, use_tools

pytestmark = pytest.mark.django_db

PARTS = ("page", "messages", "context", "moment", "raw", "card")
# Templates and statements that a page may take, once its parts are rendered.
TEMPLATES, STATEMENTS = 9, 8


@pytest.fixture(autouse=True)
def nothing_was_asked_before():
    presenter.cache.clear()


@pytest.fixture
def stranger():
    return Client()


@pytest.fixture
def share(conversation):
    return create_share(conversation, with_view=True)


def link(share, part="page", **numbers):
    address = reverse(f"shared-{part}", args=[share.token])
    query = "&".join(f"{name}={value}" for name, value in numbers.items())
    return f"{address}?{query}"


def record_letters(monkeypatch):
    """The texts that a picture is drawn with."""
    written, draw = set(), ImageDraw.ImageDraw.text

    def record(self, place, text, *rest):
        written.add(text)
        return draw(self, place, text, *rest)

    monkeypatch.setattr(ImageDraw.ImageDraw, "text", record)
    return written


def text_of(client, address):
    answered = client.get(address)
    assert answered.status_code == 200
    return answered.content.decode()


def everything(client, share):
    """All that can be had of a link, in one text."""
    replies = shown_replies(share).values_list("seq", flat=True)
    addresses = [link(share), link(share, "messages")]
    for part in ("context", "moment", "raw") if share.with_view else ():
        addresses += [link(share, part, reply=seq) for seq in replies]
    found = map(client.get, addresses)
    return "".join(each.content.decode() for each in found)


class TestPage:
    @pytest.mark.parametrize(
        ("with_view", "words"),
        [(False, "as its author has shared it"), (True, "what the model was sent")],
    )
    def test_a_page_says_what_it_is_and_leads_to_the_site(
        self, stranger, conversation, with_view, words
    ):
        share = create_share(conversation, with_view=with_view)
        said = text_of(stranger, link(share)).partition("what-is-this")[2][:400]
        assert words in said
        assert '<a href="/">Start a conversation of your own</a>' in said

    def test_page_shows_the_conversation_without_a_login(self, stranger, share):
        page = text_of(stranger, link(share))
        assert "What is my budget?" in page
        assert "Reply to: What is my budget?" in page
        assert "Trip to Kyoto" in page

    def test_a_file_stands_behind_what_was_typed(self, stranger, conversation):
        send(conversation, ("lamps.txt", LONG), text="Look here")
        answer(conversation)
        page = text_of(stranger, link(create_share(conversation)))
        assert "Look here" in page
        assert "lamps.txt" in page
        assert "Lamp 12 costs" in page
        assert "Lamp 4999 costs" not in page
        assert "attachment-" not in page.replace('class="attachment', "")

    def test_a_hidden_message_is_named_in_its_place(self, stranger, alice):
        made = transcript.create_conversation(alice)
        talk_in_turns(made, "Tea", "Coffee", "Milk")
        made.refresh_from_db()
        share = create_share(made, with_view=True)
        actions.exclude_messages(made, [3, 6])
        page = text_of(stranger, link(share))
        places = [page.index(f'id="message-{seq}"') for seq in (2, 3, 4, 5, 6)]
        assert places == sorted(places)
        assert "#3 was hidden by its author" in page
        assert "#6 was hidden by its author" in page
        assert "Coffee" not in page.partition('id="message-4"')[0]
        made.messages.filter(seq=6).update(excluded_at=None)
        actions.delete_message(made, 6)
        assert "#6 was" not in text_of(stranger, link(share))

    def test_the_page_opens_with_a_reply_that_can_be_shown(self, stranger, alice):
        made = transcript.create_conversation(alice)
        talk_in_turns(made, "Tea", "Coffee", "Milk")
        made.refresh_from_db()
        share = create_share(made, with_view=True)
        actions.exclude_messages(made, [3])
        page = text_of(stranger, link(share))
        assert "As sent for reply #2" in page
        assert "word for word" in page

    def test_the_title_is_that_of_the_conversation(self, stranger, alice):
        made = transcript.create_conversation(alice)
        talk_in_turns(made, "Where do I get good tea?", "And milk?")
        rows = type(made).objects.filter(pk=made.pk)
        rows.update(title="Buying tea", title_seqs=[1, 2])
        share = create_share(rows.get(), with_view=False)
        assert '<h1 dir="auto">Buying tea</h1>' in text_of(stranger, link(share))
        actions.exclude_messages(made, [2])
        assert "Buying tea" not in text_of(stranger, link(share))

    def test_robots_are_kept_out(self, stranger, share):
        for part in PARTS:
            answered = stranger.get(link(share, part))
            assert answered["X-Robots-Tag"] == "noindex, nofollow, noarchive"
            assert "no-store" in answered["Cache-Control"]
            # Other sites do not receive the address.
            assert answered["Referrer-Policy"] == "same-origin"
        assert '<meta name="robots" content="noindex' in text_of(stranger, link(share))

    def test_page_has_the_usual_security_policy(self, stranger, share):
        header = "Content-Security-Policy"
        own = stranger.get(link(share))[header]
        assert own == stranger.get("/accounts/login/")[header]

    def test_page_opens_no_socket_and_changes_nothing(self, stranger, share):
        found = everything(stranger, share)
        assert not re.search(
            r"\b(ws-connect|ws-send|hx-post|hx-put|hx-delete)\b", found
        )
        forms = re.findall(r'<form[^>]*method="post"[^>]*action="([^"]+)"', found)
        assert set(forms) == {"/theme/", "/language/"}

    def test_page_answers_safe_methods_alone(self, stranger, share):
        for part in PARTS:
            assert stranger.post(link(share, part)).status_code == 405

    def test_page_is_the_same_whoever_is_signed_in(self, stranger, share, bob):
        def page(client):
            # Apart from the token of forms, which is another each time.
            return re.sub(r"[A-Za-z0-9]{64}", "token", text_of(client, link(share)))

        owner, other = signed_in(share.conversation.owner), signed_in(bob)
        assert page(stranger) == page(owner) == page(other)

    def test_page_reads_no_session(self, share):
        owner = signed_in(share.conversation.owner)
        with CaptureQueriesContext(connection) as queries:
            everything(owner, share)
        tables = " ".join(row["sql"] for row in queries)
        assert "django_session" not in tables
        assert 'FROM "auth_user"' not in tables

    def test_opens_of_the_page_are_counted_and_no_others(self, stranger, share):
        for part in PARTS:
            stranger.get(link(share, part))
        stranger.head(link(share))
        share.refresh_from_db()
        assert share.opens == 1

    def test_messages_come_in_pieces(self, stranger, conversation, monkeypatch):
        monkeypatch.setattr(presenter, "PIECE", 3)
        talk_in_turns(conversation, "Five", "Seven")
        share = create_share(conversation)
        numbers = re.compile(r'id="message-(\d+)"')
        page = text_of(stranger, link(share))
        assert numbers.findall(page) == ["1", "2", "3"]
        assert 'hx-get="messages/?after=3"' in page
        rest = text_of(stranger, link(share, "messages", after=6))
        assert numbers.findall(rest) == ["7", "8"]
        assert "after=" not in rest

    def test_a_message_can_be_led_to(self, stranger, conversation, monkeypatch):
        monkeypatch.setattr(presenter, "PIECE", 3)
        monkeypatch.setattr(presenter, "LEAD", 1)
        talk_in_turns(conversation, "Five", "Seven")
        share = create_share(conversation)
        assert 'id="message-7"' in text_of(stranger, link(share, at=7))
        assert 'id="message-1"' in text_of(stranger, link(share, at=2))

    def test_a_number_that_can_be_none_is_not_found(self, stranger, share):
        for query in ("after=x", "at=-1", "reply=99999999999", "reply=3"):
            assert stranger.get(f"{link(share)}{query}").status_code == 404


class TestModelsView:
    def test_each_reply_shows_what_the_model_saw(self, stranger, share):
        pane = text_of(stranger, link(share, "context", reply=2))
        assert "As sent for reply #2" in pane
        assert "Exactly what was sent" in pane
        assert "What is my budget?" not in pane

    def test_the_page_shows_that_of_the_newest(self, stranger, share):
        assert "As sent for reply #4" in text_of(stranger, link(share))

    def test_replies_that_cannot_be_shown_take_no_statements_of_their_own(
        self, conversation
    ):
        taken = []
        for _ in range(2):
            for number in range(6):
                talk_in_turns(conversation, f"Question {number}")
            share = create_share(conversation, with_view=True)
            taken.append(share)
        actions.exclude_messages(conversation, [3])
        for place, share in enumerate(taken):
            with CaptureQueriesContext(connection) as captured:
                seen = presenter.read_seen(share)
            assert (seen.reply, seen.is_whole) == (2, True)
            taken[place] = len(captured)
        assert taken[0] == taken[1] <= 8

    def test_the_replay_shows_both_panes(self, stranger, share):
        moment = text_of(stranger, link(share, "moment", reply=2))
        left = moment.partition('id="replayed"')[2]
        assert re.findall(r'data-seq="(\d+)"', left) == ["1", "2"]
        assert "As sent for reply #2" in moment

    def test_the_replay_opens_at_the_moment_of_the_address(self, stranger, share):
        page = text_of(stranger, link(share, reply=2) + "&replay")
        assert 'data-moment="2"' in page
        assert f'content="http://testserver{link(share, "card", reply=2)}"' in page
        assert "data-moment" not in text_of(stranger, link(share, reply=2))

    def test_a_moment_that_is_not_whole_opens_no_replay(self, stranger, share):
        actions.exclude_messages(share.conversation, [1])
        page = text_of(stranger, link(share, reply=2) + "&replay")
        assert "data-moment" not in page
        assert 'data-seq="2"' in page

    def test_the_picture_of_a_moment_has_its_messages(
        self, stranger, share, monkeypatch
    ):
        written = record_letters(monkeypatch)
        shown = stranger.get(link(share, "card", reply=2))
        picture = Image.open(BytesIO(shown.content))
        assert (shown["Content-Type"], picture.size) == ("image/png", (1200, 630))
        assert {"Hello", "Reply to: Hello", "Instructions"} <= written
        assert "What is my budget?" not in written

    def test_the_picture_has_the_beginning_of_a_long_word(
        self, stranger, share, monkeypatch
    ):
        transcript.rename_conversation(share.conversation, "x" * 60)
        written = record_letters(monkeypatch)
        stranger.get(link(share, "card", reply=2))
        assert f"{'x' * 37}…" in written

    def test_the_picture_has_no_rules_that_the_link_leaves_out(
        self, stranger, conversation, monkeypatch
    ):
        begin_with_rules(conversation, ["Whisper."])
        talk_in_turns(conversation, "Louder")
        for without, expected in ((False, True), (True, False)):
            made = create_share(conversation, with_view=True, without_rules=without)
            written = record_letters(monkeypatch)
            stranger.get(link(made, "card", reply=6))
            assert ("Rules" in written) == expected
            assert any("Whisper" in line for line in written) == expected

    def test_the_picture_of_a_hidden_moment_is_its_title_alone(
        self, stranger, share, monkeypatch
    ):
        transcript.rename_conversation(share.conversation, "旅行")
        actions.exclude_messages(share.conversation, [1])
        written = record_letters(monkeypatch)
        stranger.get(link(share, "card", reply=2))
        assert written == {"Windowpane"}

    def test_the_request_is_shown_as_it_was_sent(self, stranger, share):
        raw = text_of(stranger, link(share, "raw", reply=4))
        assert "&quot;content&quot;: &quot;What is my budget?&quot;" in raw

    def test_a_request_with_a_hidden_message_is_not(self, stranger, share):
        actions.exclude_messages(share.conversation, [1])
        found = everything(stranger, share)
        assert "Hello" not in re.sub("Reply to: Hello", "", found)
        assert "not on this page" in text_of(stranger, link(share, "context", reply=2))
        assert stranger.get(link(share, "raw", reply=2)).status_code == 404

    def test_stored_parts_of_a_request_are_not_shown_either(self, stranger, share):
        address, verified = link(share, "context", reply=4), "Exactly what was sent"
        assert verified in text_of(stranger, address)
        actions.delete_message(share.conversation, 1)
        assert verified not in text_of(stranger, address)

    def test_view_is_absent_unless_it_is_shared(self, stranger, conversation):
        actions.set_system_prompt(conversation, "Whisper.", seen="")
        use_tools(conversation, "Look it up", Use(name="clock", result="noon"))
        talk_in_turns(conversation, "Thanks")
        share = create_share(conversation)
        found = everything(stranger, share)
        for word in ("Whisper", "clock", "noon", "context/", "layout.js"):
            assert word not in found
        for part in ("context", "moment", "raw"):
            assert stranger.get(link(share, part)).status_code == 404
            assert stranger.get(link(share, part, reply=4)).status_code == 404

    def test_reasoning_belongs_to_it(self, stranger, conversation):
        submit(conversation, "Think")
        answer(conversation, "Done", reasoning="The system prompt says so")
        without, with_view = (
            text_of(stranger, link(create_share(conversation, with_view=value)))
            for value in (False, True)
        )
        assert "The system prompt says so" not in without
        assert "The system prompt says so" in with_view

    def test_imported_replies_have_no_request(self, stranger, alice):
        made = transcript.create_conversation(alice)
        reply_to(ask(made, "Hello"), "Hi")
        share = create_share(made, with_view=True)
        page = text_of(stranger, link(share))
        assert "it is not known what the model saw" in page
        assert "data-replay" not in page


class TestNothingElse:
    def test_page_has_nothing_of_the_owner_or_of_other_texts(
        self, stranger, alice, bob
    ):
        alice.email, alice.first_name = "alice@example.org", "Alicia"
        alice.save()
        transcript.create_conversation(alice, title="Divorce papers")
        made = transcript.create_conversation(alice, system_prompt="Be kind.")
        talk_in_turns(made, "One", "the-hidden-one", "the-deleted-one")
        actions.exclude_messages(made, [3])
        actions.delete_message(made, 5)
        talk_in_turns(made, "the-replaced-one")
        commands.edit_message(made, seq=7, text="Better", client_id="better")
        answer(made, "Fine")
        share = create_share(made, with_view=True)
        talk_in_turns(made, "the-later-one")
        submit(made, "the-unanswered-one")
        found = everything(stranger, share)
        assert "Better" in found
        said = re.sub(r"Reply to: [a-z-]+", "", found)
        for word in ("hidden", "deleted", "replaced", "later", "unanswered"):
            assert f"the-{word}-one" not in said
        for word in ("alice", "Alicia", "Divorce", str(made.uuid), "/c/", "/account"):
            assert word not in found

    def test_hidden_messages_are_not_in_the_replay(self, stranger, share):
        talk_in_turns(share.conversation, "Five")
        later = create_share(share.conversation, with_view=True)
        actions.exclude_messages(share.conversation, [5])
        assert "Five" not in text_of(stranger, link(later, "moment", reply=4))


class TestMissing:
    def test_every_link_that_opens_nothing_is_missing_alike(
        self, stranger, conversation, bob, settings
    ):
        made = [create_share(conversation) for _ in range(3)]
        deleted = transcript.create_conversation(bob)
        talk_in_turns(deleted, "Gone")
        made.append(create_share(deleted))
        revoke_share(conversation, made[0].pk)
        Share.objects.filter(pk=made[1].pk).update(expires_at=Now())
        library.delete_conversation(deleted)
        addresses = [
            "/s/" + "x" * 32 + "/",
            *(link(each) for each in (made[0], made[1], made[3])),
        ]
        answers = [stranger.get(each) for each in addresses]
        settings.SHARE_LINKS = False
        answers.append(stranger.get(link(made[2])))
        assert {each.status_code for each in answers} == {404}
        assert len({each.content for each in answers}) == 1
        for each in answers:
            # It says the second in which it was asked for.
            del each.headers["Expires"]
        assert len({str(sorted(each.headers.items())) for each in answers}) == 1


class TestPace:
    def test_address_waits_while_another_does_not(self, stranger, share, settings):
        settings.SHARE_REQUESTS_PER_MINUTE = 3
        for _ in range(3):
            assert stranger.get(link(share)).status_code == 200
        refused = stranger.get(link(share))
        assert refused.status_code == 429
        assert 1 <= int(refused["Retry-After"]) <= 20
        assert b"Too many requests" in refused.content
        other = Client(REMOTE_ADDR="192.0.2.7")
        assert other.get(link(share)).status_code == 200

    def test_a_wrong_link_counts_as_ten(self, stranger, share, settings):
        settings.SHARE_REQUESTS_PER_MINUTE = 30
        for number in range(3):
            assert stranger.get(f"/s/{number:032}/").status_code == 404
        assert stranger.get(f"/s/{9:032}/").status_code == 429
        assert stranger.get(link(share)).status_code == 429

    def test_a_first_request_is_never_refused(self, rf, settings, monkeypatch):
        settings.SHARE_REQUESTS_PER_MINUTE = 1
        now = 10.271133
        assert (now + 60) - now > 60, "a rounded number"
        monkeypatch.setattr(pacing.time, "monotonic", lambda: now)
        assert not wait_for_address(rf.get("/"))

    def test_refusing_asks_the_database_nothing(self, stranger, share, settings):
        settings.SHARE_REQUESTS_PER_MINUTE = 1
        stranger.get(link(share))
        with CaptureQueriesContext(connection) as queries:
            assert stranger.get(link(share)).status_code == 429
        assert not queries.captured_queries

    def test_behind_a_proxy_the_address_is_the_one_that_the_proxy_wrote(
        self, stranger, share, settings
    ):
        settings.SHARE_REQUESTS_PER_MINUTE, settings.BEHIND_PROXY = 1, True
        for forged in range(3):
            header = {"X-Forwarded-For": f"192.0.2.{forged}, 198.51.100.1"}
            last = stranger.get(link(share), headers=header)
        assert last.status_code == 429

    def test_zero_is_no_limit(self, stranger, share, settings):
        settings.SHARE_REQUESTS_PER_MINUTE = 0
        for _ in range(5):
            assert stranger.get(link(share)).status_code == 200

    def test_addresses_seen_last_alone_are_remembered(self, rf, settings, monkeypatch):
        monkeypatch.setattr(pacing, "MAX_KEPT", 5)
        for number in range(20):
            assert not wait_for_address(rf.get("/", REMOTE_ADDR=f"192.0.2.{number}"))
        assert len(pace) == 5

    def test_a_pause_makes_up_for_it(self, rf, settings, monkeypatch):
        settings.SHARE_REQUESTS_PER_MINUTE = 60
        now = 1_000.0
        monkeypatch.setattr(pacing.time, "monotonic", lambda: now)
        waits = [wait_for_address(rf.get("/")) for _ in range(61)]
        assert waits == [0.0] * 60 + [1.0]
        now += 1.0
        assert not wait_for_address(rf.get("/"))


class TestWeight:
    @pytest.mark.parametrize("messages", [20, 400])
    def test_a_page_is_few_templates_and_statements(
        self, stranger, alice, rendered, messages
    ):
        share = create_share(make(alice, messages), with_view=True)
        stranger.get(link(share))
        rendered.clear()
        with CaptureQueriesContext(connection) as queries:
            assert stranger.get(link(share)).status_code == 200
        assert rendered.total() <= TEMPLATES, rendered.most_common()
        assert len(queries) <= STATEMENTS, [row["sql"] for row in queries]

    def test_shared_pages_have_a_cache_of_their_own(self, stranger, client, share):
        client.get(reverse("conversation-detail", args=[share.conversation.uuid]))
        before = len(parts.cache)
        everything(stranger, share)
        assert len(presenter.cache)
        assert len(parts.cache) == before

    def test_two_links_share_what_was_rendered(self, stranger, conversation, rendered):
        first, second = (create_share(conversation, with_view=True) for _ in "ab")
        stranger.get(link(first))
        rendered.clear()
        stranger.get(link(second))
        assert rendered["sharing/page.html"] == 1
        assert rendered["sharing/_message.html"] == 0
        assert rendered["sharing/_request.html"] == 0


class TestDialog:
    def url(self, conversation, name="share", *args):
        return reverse(name, args=[conversation.uuid, *args])

    def test_a_link_is_made_and_listed(self, client, stranger, conversation):
        values = {"last_seq": 2, "with_view": "on", "days": 7}
        made = client.post(self.url(conversation, "share-create"), values)
        share = conversation.shares.get()
        assert (share.last_seq, share.with_view) == (2, True)
        address = f"http://testserver/s/{share.token}/?replay"
        assert address in made.content.decode()
        assert "not opened yet" in made.content.decode()
        stranger.get(address)
        shown = client.get(self.url(conversation)).content.decode()
        assert "opened 1 time" in shown
        assert "Up to #2" in shown

    def test_dialog_shows_what_the_link_will_show(self, client, conversation):
        whole = client.get(self.url(conversation)).content.decode()
        assert "all messages as they are now, up to #4" in whole
        part = client.get(self.url(conversation) + "?at=2").content.decode()
        assert "the messages up to #2 as they are now" in part

    def test_link_is_revoked(self, client, stranger, conversation, share):
        address = self.url(conversation, "share-revoke", share.pk)
        assert client.post(address, headers=HTMX).status_code == 200
        gone = stranger.get(link(share))
        assert gone.status_code == 404
        assert "revoked" in gone.content.decode()
        # As for a link that never was.
        never = stranger.get(f"/s/{'0' * 32}/")
        assert (never.status_code, never.content) == (404, gone.content)
        again = client.post(address, {"next": "/account/#shares"})
        assert again["Location"] == "/account/#shares"

    def test_the_log_of_the_conversation_has_both(self, client, conversation):
        client.post(self.url(conversation, "share-create"), {"days": 7})
        address = self.url(conversation, "share-revoke", conversation.shares.get().pk)
        for _ in range(2):  # the second one ends nothing
            client.post(address)
        made, revoked = conversation.changes.order_by("pk")
        assert (made.get_action_display(), made.seq) == ("made a link", 4)
        assert (revoked.get_action_display(), revoked.seq) == ("revoked a link", None)

    def test_strangers_have_no_access_to_the_dialog(self, bob, conversation, share):
        other, no_one = signed_in(bob), Client()
        for name, args in (("share", ()), ("share-create", ())):
            address = self.url(conversation, name, *args)
            send = other.get if name == "share" else other.post
            assert send(address).status_code == 404
            assert no_one.post(address).status_code in (302, 405)
        address = self.url(conversation, "share-revoke", share.pk)
        assert other.post(address).status_code == 404
        own = transcript.create_conversation(bob)
        assert other.post(self.url(own, "share-revoke", share.pk)).status_code == 302
        assert find_share(share.token)

    def test_bad_input_makes_no_link(self, client, conversation):
        address = self.url(conversation, "share-create")
        for values in ({"days": 9999}, {"days": "x"}, {"last_seq": -1}):
            page = client.post(address, values).content.decode()
            assert "This link can&#x27;t be made" in page
        assert not conversation.shares.exists()

    def test_dialog_is_404_without_links(self, client, conversation, settings):
        page = client.get(reverse("conversation-detail", args=[conversation.uuid]))
        assert self.url(conversation) in page.content.decode()
        settings.SHARE_LINKS = False
        assert client.get(self.url(conversation)).status_code == 404
        made = client.post(self.url(conversation, "share-create"))
        assert made.status_code == 404
        assert not conversation.shares.exists()

    def test_the_account_page_lists_all_links(self, client, bob, conversation, share):
        page = client.get("/account/").content.decode()
        assert link(share)[:-1] in page
        assert self.url(conversation, "share-revoke", share.pk) in page
        theirs = signed_in(bob).get("/account/").content.decode()
        assert share.token not in theirs

    def test_the_download_names_links_without_their_addresses(self, share):
        value, _ids = _describe_account(share.conversation.owner)
        text = dump_export(value)
        assert '"share_links": [{' in text
        assert str(share.conversation.uuid) in text
        assert share.token not in text


class TestReview:
    def test_staff_see_links_and_opens_but_not_the_link(self, staff, stranger, share):
        stranger.get(link(share))
        client = signed_in(staff)
        listed = client.get(reverse("admin:sharing_share_changelist")).content.decode()
        one = reverse("admin:sharing_share_change", args=[share.pk])
        shown = client.get(one).content.decode()
        assert "alice" in listed
        assert "#4" in listed
        for page in (listed, shown):
            assert share.token not in page

    def test_the_link_can_not_be_found_out_by_filters(self, staff, share):
        address = reverse("admin:sharing_share_changelist")
        for lookup in ("token", "token__startswith", "token__regex"):
            answered = signed_in(staff).get(address, {lookup: share.token[:1]})
            assert answered.status_code in (302, 400)
