"""A quiz on a link: readers guess before they see what the model saw."""

import pytest
from django.test import Client
from django.urls import reverse

from chatsite.accounts.account import delete_account
from chatsite.contrib.quiz.models import GuessCount
from chatsite.contrib.quiz.services import MOST_GUESSES, describe_quizzes
from chatsite.features.sharing import pace, presenter
from chatsite.features.sharing.models import Share
from chatsite.features.sharing.services import create_share, revoke_share
from memory import transcript

from ...scenes import HTMX, signed_in, talk_in_turns

pytestmark = pytest.mark.django_db
QUESTION = "Does it still <b>know</b> the allergy?"
SYSTEM_PROMPT = "Answer as a pirate."


@pytest.fixture(autouse=True)
def nothing_was_asked_before():
    presenter.cache.clear()
    pace.pace.clear()


@pytest.fixture
def talked(alice):
    made = transcript.create_conversation(alice, title="", system_prompt=SYSTEM_PROMPT)
    talk_in_turns(made, "I am allergic to nuts.", "What may I eat?")
    made.refresh_from_db()
    return made


@pytest.fixture
def link(talked):
    return create_share(talked, with_view=True, choices={"quiz": QUESTION})


def page(link, client, part="page", query=""):
    address = reverse(f"shared-{part}", args=[link.token]) + query
    return client.get(address).content.decode()


def guess(link, client, value="yes"):
    address = reverse("quiz-guess", args=[link.token])
    return client.post(f"{address}?reply=4", {"guess": value})


def numbers(link):
    return GuessCount.objects.values_list("yes", "no").get(share=link)


class TestQuestion:
    def test_page_shows_the_question_in_place_of_the_request(self, link):
        text = page(link, Client())
        assert "Does it still &lt;b&gt;know&lt;/b&gt; the allergy?" in text
        assert "I am allergic to nuts." in text
        assert SYSTEM_PROMPT not in text
        assert "data-replay" not in text

    @pytest.mark.parametrize("query", ["?replay", "?replay&reply=2", "?reply=4"])
    def test_address_of_a_moment_shows_no_request(self, link, query):
        assert SYSTEM_PROMPT not in page(link, Client(), query=query)
        assert "data-moment" not in page(link, Client(), query=query)

    @pytest.mark.parametrize("part", ["context", "moment"])
    def test_parts_show_the_question(self, link, part):
        text = page(link, Client(), part, "?reply=2")
        assert "the allergy?" in text
        assert SYSTEM_PROMPT not in text

    def test_json_and_picture_show_nothing(self, link, talked):
        client = Client()
        assert client.get(reverse("shared-raw", args=[link.token])).status_code == 404
        card = reverse("shared-card", args=[link.token])
        before = client.get(card).content
        guess(link, client)
        assert client.get(card).content != before

    def test_link_without_a_question_is_as_before(self, talked):
        bare = create_share(talked, with_view=True)
        assert SYSTEM_PROMPT in page(bare, Client())
        assert guess(bare, Client()).status_code == 404
        assert not GuessCount.objects.exists()


class TestGuess:
    def test_guess_opens_the_reply_with_the_numbers(self, link):
        guess(link, Client(), "no")
        client = Client()
        response = guess(link, client)
        assert response.headers["Location"].endswith(f"/{link.token}/?replay&reply=4")
        text = client.get(response.headers["Location"]).content.decode()
        assert SYSTEM_PROMPT in text
        assert "your guess" in text
        assert 'data-moment="4"' in text
        assert numbers(link) == (1, 1)

    def test_reader_counts_once(self, link):
        client = Client()
        for value in ("yes", "yes", "no"):
            assert guess(link, client, value).status_code == 302
        assert numbers(link) == (1, 0)

    def test_cookie_of_another_link_is_no_guess(self, link, talked):
        other = create_share(talked, with_view=True, choices={"quiz": "And this?"})
        client = Client()
        guess(other, client)
        assert "And this?" in page(other, client)
        assert SYSTEM_PROMPT not in page(link, client)

    def test_cookie_that_was_written_by_a_reader_is_no_guess(self, link):
        client = Client()
        client.cookies["quiz"] = "yes"
        assert SYSTEM_PROMPT not in page(link, client)

    @pytest.mark.parametrize("value", ["", "perhaps", "share_id"])
    def test_other_guesses_are_refused(self, link, value):
        assert guess(link, Client(), value).status_code == 404
        assert not GuessCount.objects.exists()

    def test_guess_wants_a_post_of_this_page(self, link):
        address = reverse("quiz-guess", args=[link.token])
        assert Client().get(address).status_code == 405
        strict = Client(enforce_csrf_checks=True)
        assert strict.post(address, {"guess": "yes"}).status_code == 403

    def test_signed_in_reader_leaves_no_name(self, link, bob):
        guess(link, signed_in(bob))
        assert [field.name for field in GuessCount._meta.fields] == [
            "id",
            "share",
            "yes",
            "no",
        ]
        assert numbers(link) == (1, 0)


class TestFlood:
    def test_address_that_guesses_too_often_waits(self, link, settings):
        settings.SHARE_REQUESTS_PER_MINUTE = 5
        codes = [guess(link, Client()).status_code for _ in range(8)]
        assert codes == [302] * 5 + [429] * 3
        assert numbers(link) == (5, 0)

    def test_link_counts_so_many_guesses(self, link):
        guess(link, Client())
        GuessCount.objects.update(no=MOST_GUESSES - 1)
        client = Client()
        assert guess(link, client).status_code == 302
        assert SYSTEM_PROMPT in page(link, client)
        assert numbers(link) == (1, MOST_GUESSES - 1)


class TestEnd:
    def test_guessed_address_is_404(self, db):
        address = reverse("quiz-guess", args=["x" * 32])
        assert Client().post(address, {"guess": "yes"}).status_code == 404

    def test_revoked_link_takes_no_guess(self, link, talked):
        revoke_share(talked, link.pk)
        assert guess(link, Client()).status_code == 404

    def test_numbers_go_with_the_account(self, link, alice):
        guess(link, Client())
        delete_account(alice)
        assert not GuessCount.objects.exists()
        assert not Share.objects.exists()


class TestOwner:
    def test_owner_makes_a_quiz_in_the_dialog(self, talked, alice):
        owner = signed_in(alice)
        address = reverse("share-create", args=[talked.uuid])
        values = {"days": 7, "quiz": f"  {QUESTION} "}
        text = owner.post(address, values, **HTMX).content.decode()
        assert "with a quiz" in text
        made = talked.shares.get()
        assert made.choices == {"quiz": QUESTION}
        assert made.with_view

    def test_question_that_is_too_long_makes_no_link(self, talked, alice):
        address = reverse("share-create", args=[talked.uuid])
        values = {"days": 7, "quiz": "x" * 201}
        text = signed_in(alice).post(address, values, **HTMX).content.decode()
        assert "This link can&#x27;t be made." in text
        assert not talked.shares.exists()

    def test_download_of_the_account_has_the_numbers(self, link, alice):
        guess(link, Client(), "no")
        [row] = describe_quizzes(alice)
        assert (row["yes"], row["no"], row["last_seq"]) == (0, 1, 4)
