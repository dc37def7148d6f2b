"""Asking for a link by e-mail, and what a link opens."""

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.forms import SetPasswordForm
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from chatsite.accounts.access import private_page
from chatsite.accounts.forms import SignupForm

from . import link_actions, links, parts
from .forms import EmailForm, ForgottenForm
from .models import MailedLink

View = Callable[..., HttpResponse]
LOCAL = "django.contrib.auth.backends.ModelBackend"


def needs_mail(view: View) -> View:
    """There is no such page on a site that sends no mail."""

    @wraps(view)
    def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not settings.EMAIL_URL:
            raise Http404
        return view(request, *args, **kwargs)

    return checked


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@needs_mail
def ask_for_reset(request: HttpRequest) -> HttpResponse:
    form = ForgottenForm(request.POST or None)
    if form.is_valid():
        link_actions.send_reset(request, form.cleaned_data["email"])
        return redirect("signin-sent")
    status = 400 if form.is_bound else 200
    return render(request, "signin/forgotten.html", {"form": form}, status=status)


@require_safe
@needs_mail
def show_sent(request: HttpRequest) -> HttpResponse:
    """Return the same page whether there is such an account or not."""
    values = {"hours": links.HOURS[MailedLink.LinkKind.RESET]}
    return render(request, "signin/sent.html", values)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def open_link(request: HttpRequest, token: str) -> HttpResponse:
    """Show the page of a link; GET has no effect, as mail programs follow links."""
    try:
        link = links.find_link(token)
        return OPENED[link.kind](request, link)
    except MailedLink.DoesNotExist:
        return render(request, "signin/gone.html", status=404)


def _choose_password(request: HttpRequest, link: MailedLink) -> HttpResponse:
    form = SetPasswordForm(link.user, request.POST or None)
    if form.is_valid():
        link_actions.reset_password(link, form.cleaned_data["new_password1"])
        messages.success(request, _("Your password was changed. Log in with it."))
        return redirect("login")
    return _show_form(request, "signin/choose_password.html", form, link)


def _confirm_address(request: HttpRequest, link: MailedLink) -> HttpResponse:
    values = {"link": link}
    if request.method == "POST":
        try:
            link_actions.confirm_email(link)
        except link_actions.TakenError:
            return render(request, "signin/taken.html", values, status=409)
        return render(request, "signin/confirmed.html", values)
    return render(request, "signin/confirm.html", values)


def _take_invitation(request: HttpRequest, link: MailedLink) -> HttpResponse:
    form = SignupForm(request.POST or None)
    accept = partial(link_actions.accept_invitation, link)
    if form.is_valid() and (user := form.create_account(accept)):
        login(request, user, backend=LOCAL)
        return redirect("conversation-list")
    return _show_form(request, "signin/invited.html", form, link)


def _show_form(
    request: HttpRequest, template: str, form: Any, link: MailedLink
) -> HttpResponse:
    status = 400 if form.is_bound else 200
    return render(request, template, {"form": form, "link": link}, status=status)


OPENED = {
    MailedLink.LinkKind.RESET: _choose_password,
    MailedLink.LinkKind.EMAIL: _confirm_address,
    MailedLink.LinkKind.INVITATION: _take_invitation,
}


@private_page("POST")
@needs_mail
def change_email(request: HttpRequest) -> HttpResponse:
    form = EmailForm(request, request.POST, prefix=parts.PREFIX)
    if not form.is_valid():
        values = {"form": form}
        return render(request, "signin/email.html", values, status=422)
    email = form.cleaned_data["email"]
    if not email:
        link_actions.remove_email(request.user)
        messages.success(request, _("Your e-mail address was removed."))
        return redirect("account")
    try:
        link_actions.send_confirmation(request, email)
    except links.TooManyLinksError:
        form.add_error("email", _("Too many mails were sent. Try again in an hour."))
        return render(request, "signin/email.html", {"form": form}, status=429)
    text = _("A link was sent to %(email)s. Open it there.")
    messages.success(request, text % {"email": email})
    return redirect("account")
