"""Logging in, being locked out, and signing up."""

import logging
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login, logout, update_session_auth_hash
from django.contrib.auth import views as auth
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse, reverse_lazy
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from chatsite.proxies import client_address

from . import account, preferences, usage
from .access import private_page
from .forms import (
    ChangePasswordForm,
    EnterForm,
    PasswordForm,
    PreferencesForm,
    SignupForm,
)

logger = logging.getLogger(__name__)


class LoginView(auth.LoginView):
    redirect_authenticated_user = True
    extra_context = {"signup_enabled": lambda: settings.SIGNUP_ENABLED}


@never_cache
def locked_out(request: HttpRequest, *args: object) -> HttpResponse:
    """Return the page after too many wrong passwords; django-axes calls it anywhere."""
    # Its own line hides the address, too, which is what an operator looks for.
    logger.warning("log-in locked address=%s", client_address(request))
    values = {
        "failure_limit": settings.AXES_FAILURE_LIMIT,
        "cooloff_timedelta": settings.AXES_COOLOFF_TIME,
    }
    return render(request, "registration/locked_out.html", values, status=429)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def sign_up(request: HttpRequest) -> HttpResponse:
    if not settings.SIGNUP_ENABLED:
        raise Http404
    form = SignupForm(request.POST or None)
    if form.is_valid() and (user := form.create_account()):
        login(request, user, backend="django.contrib.auth.backends.ModelBackend")
        return redirect("conversation-list")
    status = 400 if form.is_bound else 200
    return render(request, "registration/signup.html", {"form": form}, status=status)


@private_page("GET", "POST")
def show_account(request: HttpRequest) -> HttpResponse:
    preferred = preferences.find_preferences(request.user)
    form = PreferencesForm(request.POST or None, instance=preferred)
    if request.method == "POST" and form.is_valid():
        form.save()
        messages.success(request, _("Saved."))
        return redirect(f"{reverse('account')}#memory")
    return _render_account(request, preferences=form)


def _render_account(request: HttpRequest, **forms: object) -> HttpResponse:
    preferred = preferences.find_preferences(request.user)
    values = {
        "preferences": PreferencesForm(instance=preferred),
        "enter": EnterForm(instance=preferred),
        "sign_out": PasswordForm(request, prefix="sign_out"),
        "deletion": PasswordForm(request, prefix="deletion"),
        "staff_can_read": settings.STAFF_CAN_READ_CHATS,
        "usage": usage.find_usage(request.user),
        "most_counted": usage.MOST_COUNTED,
        **forms,
    }
    is_wrong = any(getattr(form, "errors", None) for form in forms.values())
    status = 422 if is_wrong else 200
    return render(request, "registration/account.html", values, status=status)


@private_page("POST")
def set_enter(request: HttpRequest) -> HttpResponse:
    """Store what Enter does in the user's message boxes."""
    preferred = preferences.find_preferences(request.user)
    EnterForm(request.POST, instance=preferred).save()
    messages.success(request, _("Saved."))
    return redirect("account")


@private_page("POST")
def sign_out(request: HttpRequest) -> HttpResponse:
    """End all other sessions: each holds a trace of the password's stored form."""
    form = PasswordForm(request, request.POST, prefix="sign_out")
    if not form.is_valid():
        return _render_account(request, sign_out=form)
    if request.user.has_usable_password():
        request.user.set_password(form.cleaned_data["password"])
    else:
        request.user.set_unusable_password()  # another one, which ends sessions too
    request.user.save(update_fields=["password"])
    update_session_auth_hash(request, request.user)
    messages.success(request, _("Logged out of other devices."))
    return redirect("account")


@private_page("POST")
def delete_own_account(request: HttpRequest) -> HttpResponse:
    form = PasswordForm(request, request.POST, prefix="deletion")
    if not form.is_valid():
        return _render_account(request, deletion=form)
    try:
        account.delete_account(request.user)
    except account.BusyError:
        form.add_error(
            "password",
            _(
                "Some of your data is being written right now, so your account still "
                "exists. What was removed stays removed. Try again."
            ),
        )
        return _render_account(request, deletion=form)
    logout(request)
    return render(request, "registration/account_deleted.html")


@method_decorator(private_page("GET", "POST"), name="dispatch")
class PasswordChangeView(auth.PasswordChangeView):
    template_name = "registration/change_password.html"
    success_url = reverse_lazy("account")
    form_class = ChangePasswordForm

    def get_form_kwargs(self) -> dict[str, Any]:
        return {"request": self.request, **super().get_form_kwargs()}

    def form_valid(self, form: object) -> HttpResponse:
        messages.success(self.request, _("Your password was changed."))
        return super().form_valid(form)
