"""The page parts of a quiz: its field in the dialog, the question, and the numbers."""

from django import forms
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from chatsite.features.sharing.models import Share
from chatsite.features.sharing.presenter import SharedContext

from . import services
from .models import GuessCount

MOST_CHARS = 200


def make_quiz_field() -> forms.CharField:
    return forms.CharField(
        label=gettext_lazy("Quiz"),
        max_length=MOST_CHARS,
        help_text=gettext_lazy(
            "A question such as “Does it still know the allergy?”. Readers guess yes "
            "or no before they see what the model saw."
        ),
        required=False,
    )


def draw_quiz_fact(share: Share) -> str:
    """Return the words for the list of links."""
    words = _("with a quiz")
    return f" · {words}" if services.find_question(share) else ""


def draw_question(share: Share, seen: SharedContext, request: HttpRequest) -> str:
    """Return the question, for a reader who has not guessed yet."""
    question = services.find_question(share)
    if not question or services.read_guess(share, request):
        return ""
    values = {"question": question, "reply": seen.reply}
    return render_to_string("quiz/_question.html", values, request)


def draw_counts(share: Share, request: HttpRequest) -> str:
    """Return the question with the numbers, for a reader who has guessed."""
    question = services.find_question(share)
    if not question:
        return ""
    values = {
        "question": question,
        "guess": services.read_guess(share, request),
        "count": GuessCount.objects.get(share=share),
    }
    return render_to_string("quiz/_counts.html", values, request)
