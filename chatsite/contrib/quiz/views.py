"""The guess of a reader, who then sees what the model saw."""

from functools import partial

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from chatsite.features.sharing.models import Share
from chatsite.features.sharing.views import shared_view
from chatsite.pages.views import read_number

from . import services


@partial(shared_view, allow=require_POST)
def record_guess(request: HttpRequest, share: Share) -> HttpResponse:
    """Count the first guess of a reader; a later one only leads to the reply."""
    guess = request.POST.get("guess")
    if not services.find_question(share) or guess not in services.GUESSES:
        raise Http404
    page = reverse("shared-page", args=[share.token])
    response = redirect(f"{page}?replay&reply={read_number(request, 'reply') or ''}")
    if not services.read_guess(share, request):
        services.count_guess(share, guess, response)
    return response
