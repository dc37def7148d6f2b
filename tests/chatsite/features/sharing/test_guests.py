"""Copies of shared moments: what they have, who gets them, and the bounds of guests."""

from contextlib import suppress
from datetime import timedelta
from html.parser import HTMLParser
from urllib.parse import urlsplit
from uuid import UUID

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth import get_user_model
from django.contrib.sessions.models import Session
from django.db.models.functions import Now
from django.test import Client
from django.urls import (
    NoReverseMatch,
    Resolver404,
    URLPattern,
    get_resolver,
    resolve,
    reverse,
)

from chatsite.features.sharing import guests, presenter
from chatsite.features.sharing.models import Guest
from chatsite.features.sharing.pace import MOST_COPIES, pace
from chatsite.features.sharing.services import create_share, revoke_share
from chatsite.llm import providers
from chatsite.llm.demo.chat_model import DEMO
from chatsite.protocol.errors import CommandError
from chatsite.turns import commands, limits, requests
from memory import actions, context, transcript
from memory.models import Conversation, Message
from tests.memory.scenes import say, summarise

from ...scenes import HTMX, signed_in, talk_in_turns, url, violations

pytestmark = pytest.mark.django_db
Users = get_user_model().objects
# Values for addresses that need some.
OPEN_OF_ALL = """login logout signup theme language healthz readyz metrics manifest
diagram-frame shared-page shared-messages shared-context shared-moment shared-image
shared-card shared-raw shared-evidence"""
OPEN_OF_COPY = """detail delete messages message-menu context context-json summaries
transcript grounding rename branch costs export-json export-md"""
OPEN_OF_MEMORY = """message switch switches-keep switches-undo summaries diff edit
rewrite restore find draft moment raw work stop system-prompt set-system-prompt preview
propose proposal accept"""
NUMBERS = {"uuid": UUID(int=1), "token": "t" * 32}


@pytest.fixture(autouse=True)
def offered(settings):
    presenter.cache.clear()
    settings.SHARE_GUESTS = 3


@pytest.fixture
def source(alice):
    made = transcript.create_conversation(
        alice, title="Trip", system_prompt="Answer as a pirate.", model="gpt-own"
    )
    talk_in_turns(made, "I fly to Kyoto.", "In April.", "With Bob.")
    made.refresh_from_db()
    return made


def offer(conversation, **values):
    return create_share(conversation, with_view=True, choices={"copy": True}, **values)


@pytest.fixture
def share(source):
    return offer(source)


def press(share, client=None, query="", **options):
    address = reverse("try-copy", args=[share.token]) + query
    return (client or Client()).post(address, **options)


def copy_of(answered):
    assert answered.status_code == 302, answered.content.decode()
    return Conversation.objects.get(uuid=answered["Location"].split("/")[2])


def texts(conversation):
    rows = conversation.messages.order_by("seq")
    return list(rows.values_list("seq", "role", "text"))


@pytest.fixture
def guest(share):
    """The browser of a guest."""
    client = Client()
    client.copy, client.share = copy_of(press(share, client)), share
    return client


class TestOffer:
    def page(self, share):
        address = reverse("shared-page", args=[share.token])
        return Client().get(address).content.decode()

    def test_button_is_on_a_page_whose_owner_allows_copies(self, share, source):
        assert "Try it on a copy" in self.page(share)
        assert "Try it on a copy" not in self.page(create_share(source, with_view=True))

    def test_site_without_the_setting_offers_and_makes_no_copy(self, share, settings):
        settings.SHARE_GUESTS = 0
        assert "Try it on a copy" not in self.page(share)
        assert press(share).status_code == 404
        assert press(share, signed_in(share.conversation.owner)).status_code == 404

    def test_link_without_its_owners_choice_makes_no_copy(self, source):
        assert press(create_share(source, with_view=True)).status_code == 404

    def test_ended_link_makes_no_copy(self, share):
        revoke_share(share.conversation, share.pk)
        assert press(share).status_code == 404
        assert not Guest.objects.exists()

    def test_quiz_is_guessed_before_a_copy_is_made(self, source):
        share = create_share(
            source, with_view=True, choices={"copy": True, "quiz": "Kyoto?"}
        )
        client = Client()
        assert "Try it on a copy" not in self.page(share)
        assert press(share, client).status_code == 404
        client.post(reverse("quiz-guess", args=[share.token]), {"guess": "yes"})
        assert copy_of(press(share, client))

    def test_other_sites_cannot_press_the_button(self, share, bob):
        client = Client(enforce_csrf_checks=True)
        client.force_login(bob)
        assert press(share, client).status_code == 403
        assert press(share, Client(enforce_csrf_checks=True)).status_code == 403
        assert not Guest.objects.exists()

    def test_get_makes_no_copy(self, share):
        assert Client().get(reverse("try-copy", args=[share.token])).status_code == 405


class TestContents:
    def test_copy_has_the_messages_up_to_the_reply(self, share, source):
        made = copy_of(press(share, query="?reply=4"))
        assert texts(made) == texts(source)[:4]
        assert made.title == "Trip"
        assert violations() == []

    def test_copy_goes_on_behind_its_messages(self, share):
        made = copy_of(press(share))
        built = context.build_request_context(made)
        assert "With Bob." in str(built.messages)
        assert say(made, "And now?").message.seq > 6

    def test_copy_has_no_setting_of_the_conversation(self, share):
        made = copy_of(press(share))
        assert (made.system_prompt, made.policy, made.tools) == ("", {}, [])
        assert not made.model_calls.exists()
        assert not made.prompts.exists()

    def test_moment_with_a_hidden_or_deleted_message_makes_no_copy(self, source):
        share = offer(source)
        actions.exclude_messages(source, [1])
        assert press(share).status_code == 404
        assert press(share, query="?reply=2").status_code == 404

    def test_copy_leaves_out_a_message_hidden_from_a_later_request(self, source):
        actions.exclude_messages(source, [1])
        source.refresh_from_db()
        talk_in_turns(source, "And Bob?")
        made = copy_of(press(offer(source)))
        assert [seq for seq, *_ in texts(made)] == [2, 3, 4, 5, 6, 7, 8]

    def test_copy_has_the_summaries_of_the_request(self, source):
        summarise(source, 1, 4, text="Kyoto in April.")
        source.refresh_from_db()
        talk_in_turns(source, "And Bob?")
        made = copy_of(press(offer(source)))
        [summary] = made.summaries.all()
        assert (summary.text, summary.status) == ("Kyoto in April.", "active")
        assert (summary.first_seq, summary.last_seq) == (1, 4)
        assert "Kyoto in April." in str(context.build_request_context(made).messages)
        assert violations() == []

    def test_copy_of_an_earlier_moment_has_no_later_summary(self, source):
        summarise(source, 1, 4, text="Kyoto in April.")
        source.refresh_from_db()
        talk_in_turns(source, "And Bob?")
        made = copy_of(press(offer(source), query="?reply=6"))
        assert not made.summaries.exists()

    def test_copy_has_the_latest_messages_alone(self, share, monkeypatch):
        monkeypatch.setattr("chatsite.features.sharing.copies.MOST_MESSAGES", 4)
        assert [seq for seq, *_ in texts(copy_of(press(share)))] == [3, 4, 5, 6]

    def test_reply_that_the_link_lacks_is_not_copied(self, share, source):
        talk_in_turns(source, "Later.")
        assert press(share, query="?reply=8").status_code == 404


class TestReader:
    def test_reader_with_an_account_gets_a_copy_of_their_own(self, share, bob):
        made = copy_of(press(share, signed_in(bob)))
        assert made.owner == bob
        assert not made.is_temporary
        assert not Guest.objects.exists()
        assert not Users.filter(username__startswith="guest-").exists()

    def test_reader_without_an_account_is_a_guest_with_the_demo_model(self, guest):
        made = guest.copy
        assert (made.model, made.is_temporary) == (DEMO, True)
        assert made.owner == Guest.objects.get().user
        assert not made.owner.has_usable_password()
        page = guest.get(url("detail", made))
        assert page.status_code == 200

    def test_guest_sends_no_message_to_a_provider(self, guest, settings):
        settings.OPENAI_API_KEY, settings.SUMMARY_MODEL = "secret", "gpt-own"
        model = requests.model_of(guest.copy)
        assert (model, providers.summary_model(model)) == (DEMO, DEMO)
        assert providers.find_provider(model) is None
        assert guest.copy.title_set_by == Conversation.TitleSource.USER

    def test_guest_reads_the_copy_alone(self, guest, source):
        assert guest.get(url("detail", source)).status_code == 404
        assert Client().get(url("detail", guest.copy)).status_code == 302


class TestBounds:
    def test_address_makes_few_copies_in_a_minute(self, share):
        for _n in range(MOST_COPIES):
            assert press(share).status_code == 302
        refused = press(share)
        assert refused.status_code == 429
        assert int(refused["Retry-After"]) > 0
        assert Guest.objects.count() == MOST_COPIES
        other = press(share, REMOTE_ADDR="192.0.2.7")
        assert other.status_code == 503

    def test_user_makes_few_copies_in_a_minute(self, share, bob):
        client = signed_in(bob)
        found = [press(share, client).status_code for _n in range(MOST_COPIES + 1)]
        assert found == [302] * MOST_COPIES + [429]

    def test_guests_are_never_more_than_the_setting(self, share, settings, bob):
        settings.SHARE_GUESTS = 1
        assert press(share).status_code == 302
        before = Users.count()
        for n in range(5):
            refused = press(share, REMOTE_ADDR=f"192.0.2.{n}")
            assert refused.status_code == 503
            assert "No free place" in refused.content.decode()
        assert (Guest.objects.count(), Users.count()) == (1, before)
        # Readers with an account need no place.
        assert press(share, signed_in(bob)).status_code == 302

    def test_two_guests_never_have_one_slot(self, share, monkeypatch, settings):
        press(share)
        nobody = Guest.objects.none()
        monkeypatch.setattr(Guest.objects, "values_list", nobody.values_list)
        assert press(share).status_code == 503
        assert Guest.objects.count() == 1

    def test_turns_of_a_guest_end_with_the_tokens(self, guest):
        limits.charge_tokens(guest.copy.owner_id, guests.TOKENS)
        with pytest.raises(CommandError, match="used up"):
            commands.submit_message(
                guest.copy, text="Hi", client_id="c1", is_limited=True
            )

    def test_guest_cannot_choose_another_model(self, guest, settings):
        settings.CHAT_MODELS = ["gpt-own"]
        answered = guest.post(url("model", guest.copy), {"model": "gpt-own"})
        assert answered.status_code == 403
        guest.copy.refresh_from_db()
        assert guest.copy.model == DEMO

    def test_guest_presses_no_second_time(self, guest, share):
        assert press(share, guest).status_code == 403
        assert guest.get(reverse("shared-page", args=[share.token])).status_code == 200

    def test_guest_opens_no_page_but_those_of_the_copy(self, guest):
        numbers = {**NUMBERS, "uuid": guest.copy.uuid}
        refused = set()
        for name, kwargs in named_addresses(numbers):
            if guests.OPEN.fullmatch(name):
                continue
            address = reverse(name, kwargs=kwargs)
            for send in (guest.get, guest.post):
                assert send(address).status_code == 403, (name, address)
            refused.add(name)
        assert {
            *("account", "conversation-list", "conversation-create", "share"),
            *("share-create", "attachment-upload", "import", "account-delete"),
            *("password-change", "conversation-model", "memory-set-tools"),
            *("api-key-make", "account-export", "trial-next"),
        } <= refused

    def test_pages_of_the_copy_offer_no_refused_address(self, guest, settings, bob):
        settings.CHAT_MODELS = ["gpt-own", "gpt-other"]
        pages = [url("detail", guest.copy), url("context", guest.copy)]
        pages += [url("message-menu", guest.copy, seq) for seq in (1, 2)]
        for page in pages:
            offered = find_offered(guest.get(page, headers=HTMX).content.decode())
            assert offered
            assert {n for n in offered if not guests.OPEN.fullmatch(n)} == set(), page
        # Others are offered what a guest is not.
        made = copy_of(press(guest.share, client := signed_in(bob)))
        offered = find_offered(client.get(url("detail", made)).content.decode())
        assert {"conversation-list", "account", "conversation-model"} <= offered

    def test_guest_makes_few_copies_of_the_copy(self, guest, monkeypatch):
        monkeypatch.setattr(guests, "MOST_CONVERSATIONS", 2)
        branch = url("branch", guest.copy)
        codes = [guest.post(branch, {"seq": 2}).status_code for _n in range(2)]
        assert codes == [302, 403]
        assert guest.get(url("detail", guest.copy)).status_code == 200

    def test_pattern_opens_the_addresses_named_here_and_no_others(self):
        names = {name for name, _ in named_addresses(NUMBERS)}
        open_names = {name for name in names if guests.OPEN.fullmatch(name)}
        of_copy, memory = OPEN_OF_COPY.split(), OPEN_OF_MEMORY.split()
        assert open_names == {
            *(*OPEN_OF_ALL.split(), *(f"conversation-{each}" for each in of_copy)),
            *(f"memory-{each}" for each in memory),
            *("trials-ask", "trial-stop", "trial-reply"),
        }

    def test_account_of_the_guests_own_ends_the_bounds(self, guest):
        guest.post(reverse("logout"))
        assert guest.get(reverse("account")).status_code == 302
        guest.force_login(Users.create_user("carol"))
        assert guest.get(reverse("account")).status_code == 200


class OfferedAddresses(HTMLParser):
    """The names of the addresses that elements of a page lead to, hidden ones aside."""

    def __init__(self):
        super().__init__()
        self.names = set()

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        if "hidden" in values:
            return
        # Where the keys of the page lead to.
        values.pop("data-list", None)
        for value in filter(None, values.values()):
            with suppress(Resolver404):
                if value.startswith("/"):
                    self.names.add(resolve(urlsplit(value).path).view_name)


def find_offered(page):
    parser = OfferedAddresses()
    parser.feed(page)
    return parser.names


def named_addresses(numbers):
    """The names of all addresses, with the values that they need if all are known."""

    def walk(patterns, needs):
        for each in patterns:
            own = {**needs, **each.pattern.converters}
            if isinstance(each, URLPattern):
                if each.name:
                    yield each.name, own
            elif not getattr(each, "namespace", None):
                yield from walk(each.url_patterns, own)

    for name, needs in walk(get_resolver().url_patterns, {}):
        values = {key: numbers.get(key, "1") for key in needs}
        try:
            reverse(name, kwargs=values)
        except NoReverseMatch:
            continue
        yield name, values


@pytest.mark.django_db(transaction=True)
class TestEnd:
    def test_guest_is_deleted_with_everything_when_the_time_is_over(self, guest, share):
        say(guest.copy, "zqguest")
        Guest.objects.update(expires_at=Now() + timedelta(minutes=1))
        async_to_sync(guests.sweep_guests)()
        assert Guest.objects.exists()
        Guest.objects.update(expires_at=Now())
        async_to_sync(guests.sweep_guests)()
        assert not Guest.objects.exists()
        assert not Users.filter(username__startswith="guest-").exists()
        assert not Session.objects.exists()
        assert not Conversation.objects.filter(pk=guest.copy.pk).exists()
        assert not Message.objects.filter(text="zqguest").exists()
        assert guest.get(url("detail", guest.copy)).status_code == 302
        pace.clear()
        assert press(share).status_code == 302
