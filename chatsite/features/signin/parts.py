"""The page parts of sign-in: below the log-in form, and on the account page."""

from django.conf import settings
from django.http import HttpRequest
from django.template.loader import render_to_string

from .forms import EmailForm

PREFIX = "email"


def draw_forgotten(request: HttpRequest) -> str:
    if not settings.EMAIL_URL:
        return ""
    return render_to_string("signin/_forgotten.html", {}, request)


def draw_email(request: HttpRequest) -> str:
    if not settings.EMAIL_URL:
        return ""
    initial = {"email": request.user.email}
    form = EmailForm(request, prefix=PREFIX, initial=initial)
    return render_to_string("signin/_account.html", {"form": form}, request)
