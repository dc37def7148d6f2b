"""The pages of the second factor: a code of an app, a recovery code or a passkey.

It is asked for at the log-in, and set up and turned off on separate pages.
"""

import base64
from collections.abc import Callable
from functools import partial
from typing import Any

from allauth.account.internal.flows.login import (
    get_authentication_records,
    perform_login,
    record_authentication,
)
from allauth.account.models import Login
from allauth.account.stages import LoginStageController
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.base.internal.flows import post_authentication
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.stages import AuthenticateStage
from allauth.mfa.totp.internal import auth as totp
from allauth.mfa.utils import is_mfa_enabled
from allauth.mfa.webauthn.internal import auth as webauthn
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render, resolve_url
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.deprecation import MiddlewareMixin
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from chatsite.accounts.access import private_page
from chatsite.accounts.forms import PasswordForm
from chatsite.accounts.views import LoginView

from .. import encryption
from . import passkeys
from .forms import CodeForm, SetupForm

has_app = partial(is_mfa_enabled, types=[Authenticator.Type.TOTP])
# The factors that are asked for after the password; recovery codes alone are none.
has_second_factor = partial(
    is_mfa_enabled, types=[Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN]
)


class MfaAdapter(DefaultMFAAdapter):
    """The adapter of allauth that encrypts the secrets of apps in the database."""

    def encrypt(self, text: str) -> str:
        return encryption.seal(encryption.SECRETS, text)

    def decrypt(self, encrypted_text: str) -> str:
        return encryption.open_sealed(encryption.SECRETS, encrypted_text)

    def get_totp_issuer(self) -> str:
        return "Windowpane"

    def get_totp_label(self, user: Any) -> str:
        return user.get_username()


class StagedLoginView(LoginView):
    """The log-in that asks for the second factor after the correct password.

    Only then is the user logged in.
    """

    def form_valid(self, form: Any) -> HttpResponse:
        user = form.get_user()
        record_authentication(self.request, user, method="password")
        login = Login(user=user, redirect_url=self.get_success_url())
        return perform_login(self.request, login)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def ask_at_login(request: HttpRequest) -> HttpResponse:
    stage = LoginStageController.enter(request, AuthenticateStage.key)
    if stage is None or stage.login.user is None:
        return redirect("login")
    form = ask_factor(request, stage.login.user)
    return stage.exit() if form is None else show_question(request, form)


def ask_factor(request: HttpRequest, user: AbstractBaseUser) -> CodeForm | None:
    """Return the form for a code, or None if a valid code or passkey was posted."""
    if credential := request.POST.get("credential"):
        form = CodeForm(request, user, {"code": "-"})
        found = passkeys.check_credential(user, credential)
    else:
        form = CodeForm(request, user, request.POST or None)
        found = form.authenticator if form.is_valid() else None
    if found is None:
        return form
    post_authentication(request, found)
    return None


def show_question(request: HttpRequest, form: CodeForm) -> HttpResponse:
    values = {"form": form, "has_app": has_app(form.user)}
    if passkeys.select_passkeys(form.user):
        values["options"] = webauthn.begin_authentication(form.user)
    return _show(request, "organisation/ask_code.html", **values)


def _show(request: HttpRequest, template: str, **values: Any) -> HttpResponse:
    form = values.get("form")
    status = 422 if form is not None and form.errors else 200
    return render(request, template, values, status=status)


@private_page("GET", "POST")
def set_up(request: HttpRequest) -> HttpResponse:
    """Set up an authenticator app.

    The app reads the secret, and a code of the app proves that it has done so.
    """
    if has_app(request.user):
        return redirect("account")
    secret = totp.get_totp_secret(regenerate=request.method == "GET")
    form = SetupForm(request, request.POST or None, secret=secret)
    if form.is_valid():
        codes = _activate(request, secret)
        return _show(request, "organisation/recovery_codes.html", codes=codes)
    adapter = MfaAdapter()
    picture = adapter.build_totp_svg(adapter.build_totp_url(request.user, secret))
    values = {
        "form": form,
        "secret": secret,
        "picture": base64.b64encode(picture.encode()).decode(),
    }
    return _show(request, "organisation/set_up_code.html", **values)


@transaction.atomic
def _activate(request: HttpRequest, secret: str) -> list[str]:
    _forget_app(request.user)
    activated = totp.TOTP.activate(request.user, secret).instance
    totp.clear_totp_secret(request)
    record_authentication(
        request, request.user, "mfa", id=activated.pk, type=activated.type
    )
    return RecoveryCodes.activate(request.user).get_unused_codes()


def _forget_app(user: Any) -> None:
    """Delete the app and its recovery codes; passkeys stay."""
    rows = Authenticator.objects.filter(user=user)
    rows.exclude(type=Authenticator.Type.WEBAUTHN).delete()


def _change_with_code(
    template: str, change: Callable[[HttpRequest], HttpResponse]
) -> Callable[..., HttpResponse]:
    """Return a view that asks for a code and then makes the change."""

    @private_page("GET", "POST")
    def view(request: HttpRequest) -> HttpResponse:
        if not has_app(request.user):
            return redirect("signin-set-up")
        form = CodeForm(request, request.user, request.POST or None)
        if not form.is_valid():
            return _show(request, template, form=form)
        post_authentication(request, form.authenticator)
        return change(request)

    return view


def _renew_codes(request: HttpRequest) -> HttpResponse:
    rows = Authenticator.objects.filter(user=request.user)
    with transaction.atomic():
        rows.filter(type=Authenticator.Type.RECOVERY_CODES).delete()
        codes = RecoveryCodes.activate(request.user).get_unused_codes()
    return _show(request, "organisation/recovery_codes.html", codes=codes)


def _turn_off(request: HttpRequest) -> HttpResponse:
    _forget_app(request.user)
    messages.success(request, _("The second factor is off."))
    return redirect("account")


@private_page("GET", "POST")
def prove_again(request: HttpRequest) -> HttpResponse:
    if not has_second_factor(request.user):
        return redirect("signin-set-up")
    form = ask_factor(request, request.user)
    return redirect("admin:index") if form is None else show_question(request, form)


@private_page("POST")
def remove_passkey(request: HttpRequest, pk: int) -> HttpResponse:
    """Remove a passkey, after the password or, without one, a second factor."""
    if request.user.has_usable_password():
        form = PasswordForm(request, request.POST)
        if not form.is_valid():
            return _show(request, "organisation/remove_passkey.html", form=form)
    elif question := ask_factor(request, request.user):
        return show_question(request, question)
    passkeys.select_passkeys(request.user).filter(pk=pk).delete()
    messages.success(request, _("The passkey was removed."))
    return redirect("account")


renew_codes = _change_with_code("organisation/renew_codes.html", _renew_codes)
turn_off = _change_with_code("organisation/turn_off_code.html", _turn_off)


def draw_second_factor(request: HttpRequest) -> str:
    values = {
        "is_on": has_app(request.user),
        "passkeys": len(passkeys.select_passkeys(request.user)),
        "is_required": is_required(request.user),
    }
    return render_to_string("organisation/_second_factor.html", values, request)


def is_required(user: Any) -> bool:
    return settings.SECOND_FACTOR == "staff" and user.is_staff


def has_proved(request: HttpRequest) -> bool:
    """Return whether this session has given a second factor.

    Another session of the same user may be older than the factor.
    """
    records = get_authentication_records(request, request.user)
    return any(record.get("method") == "mfa" for record in records)


class StaffSecondFactorMiddleware(MiddlewareMixin):
    """Keeps staff out of the admin until they have given a second factor."""

    def process_view(self, request: HttpRequest, *view: Any) -> HttpResponse | None:
        """Redirect staff without a second factor away from the admin.

        Checks the route that Django resolved, not the path.
        """
        user = request.user
        is_admin = request.resolver_match.route.startswith("admin/")
        if not (is_admin and user.is_authenticated and is_required(user)):
            return None
        if has_proved(request):
            return None
        name = "signin-prove" if has_second_factor(user) else "signin-set-up"
        return redirect(name)


def lead_to_login(request: HttpRequest) -> HttpResponse:
    """Redirect from the log-in of the admin to that of the site.

    The admin's own log-in asks for no second factor.
    """
    target = request.GET.get("next", "") or reverse("admin:index")
    return redirect(f"{resolve_url(settings.LOGIN_URL)}?{urlencode({'next': target})}")
