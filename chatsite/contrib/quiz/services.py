"""The guesses of the readers of a link: read from their cookies, and counted."""

from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser
from django.db.models import F
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone

from chatsite.features.sharing.models import Share

from .models import GuessCount

# In the choices of a link, and the name of the cookie.
FIELD = "quiz"
GUESSES = ("yes", "no")
# Guesses that one link counts: more than a class, and a bound for a reader who drops
# the cookie to guess again. Later readers see the reply, too.
MOST_GUESSES = 1000


def find_question(share: Share) -> str:
    """Return the question of the link; "" if it has no quiz."""
    return share.choices.get(FIELD, "")


def read_guess(share: Share, request: HttpRequest) -> str:
    """Return what this reader has guessed, "yes" or "no"; "" before that.

    The signature belongs to the link: a cookie of another one is no guess here.
    """
    return request.get_signed_cookie(FIELD, default="", salt=_salt_of(share))


def count_guess(share: Share, guess: str, response: HttpResponse) -> None:
    """Count the guess of a reader, and remember it in the reader's browser alone."""
    count, _ = GuessCount.objects.get_or_create(share=share)
    rows = GuessCount.objects.alias(guesses=F("yes") + F("no"))
    rows = rows.filter(pk=count.pk, guesses__lt=MOST_GUESSES)
    rows.update(**{guess: F(guess) + 1})
    response.set_signed_cookie(
        FIELD,
        guess,
        salt=_salt_of(share),
        max_age=share.expires_at - timezone.now(),
        path=reverse("shared-page", args=[share.token]),
        httponly=True,
        samesite="Lax",
    )


def describe_quizzes(user: AbstractBaseUser) -> list[dict[str, Any]]:
    """Return the numbers of the links of a user as data."""
    rows = GuessCount.objects.filter(share__conversation__owner=user).order_by("pk")
    uuid = F("share__conversation__uuid")
    return list(rows.values(*GUESSES, uuid=uuid, last_seq=F("share__last_seq")))


def _salt_of(share: Share) -> str:
    return f"quiz-{share.token}"
