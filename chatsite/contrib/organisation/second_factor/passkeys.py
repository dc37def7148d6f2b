"""Passkeys: in place of the password and a code, or of a code after the password."""

from typing import Any

from allauth.account.models import Login
from allauth.mfa.models import Authenticator
from allauth.mfa.webauthn.forms import AddWebAuthnForm, AuthenticateWebAuthnForm
from allauth.mfa.webauthn.internal import auth
from allauth.mfa.webauthn.internal.flows import perform_passwordless_login
from cryptography.exceptions import InvalidSignature
from django import forms
from django.contrib import messages
from django.contrib.auth.base_user import AbstractBaseUser
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from chatsite.accounts.access import private_page

from .forms import NewFactorForm

Kind = Authenticator.Type.WEBAUTHN
# The exceptions of the libraries for an answer that no browser made.
MALFORMED = (
    *(TypeError, ValueError, KeyError, AttributeError, IndexError),
    InvalidSignature,
)
MOST_PASSKEYS = 20
MOST_OF_CREDENTIAL = 20_000


def select_passkeys(user: AbstractBaseUser) -> QuerySet[Authenticator]:
    return Authenticator.objects.filter(user=user.pk, type=Kind).order_by("pk")


def check_credential(user: AbstractBaseUser | None, text: str) -> Authenticator | None:
    """Return the passkey that signed the answer, or None if the answer is wrong.

    Accepts only passkeys of the user, or those of all users if it is None.
    """
    if len(text) > MOST_OF_CREDENTIAL:
        return None
    form = AuthenticateWebAuthnForm({"credential": text}, user=user)
    return form.cleaned_data["credential"] if _is_accepted(form) else None


def _is_accepted(form: forms.Form) -> bool:
    try:
        return form.is_valid()
    except MALFORMED:
        return False


class PasskeyForm(NewFactorForm):
    """A form that adds a passkey under a name."""

    name = forms.CharField(label=gettext_lazy("Name of the passkey"), max_length=60)
    credential = forms.CharField(
        widget=forms.HiddenInput, max_length=MOST_OF_CREDENTIAL, required=False
    )
    field_order = ("name", "password", "credential")

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if self.errors:
            return cleaned
        data = {"name": cleaned["name"], "credential": cleaned["credential"]}
        form = AddWebAuthnForm(data, user=self.request.user)
        if not _is_accepted(form):
            raise forms.ValidationError(_("The browser gave no passkey. Try again."))
        self.credential = form.cleaned_data["credential"]
        return cleaned


@private_page("GET", "POST")
def manage_passkeys(request: HttpRequest) -> HttpResponse:
    passkeys = select_passkeys(request.user)
    form = PasskeyForm(request, request.POST or None)
    if len(passkeys) < MOST_PASSKEYS and form.is_valid():
        name = form.cleaned_data["name"]
        auth.WebAuthn.add(request.user, name, form.credential)
        messages.success(request, _("You can log in with the passkey."))
        return redirect("account")
    values = {
        "form": form,
        "passkeys": passkeys,
        "options": auth.begin_registration(request.user, passwordless=True),
    }
    status = 422 if form.is_bound else 200
    return render(request, "organisation/passkeys.html", values, status=status)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def log_in_by_passkey(request: HttpRequest) -> HttpResponse:
    """Log in by a passkey alone, without a user name and a password.

    The browser offers the passkeys that it has.
    """
    values: dict[str, Any] = {"is_wrong": False}
    if request.method == "POST":
        found = check_credential(None, request.POST.get("credential", ""))
        if found is not None:
            login = Login(user=found.user, redirect_url=None)
            return perform_passwordless_login(request, found, login)
        values["is_wrong"] = True
    values["options"] = auth.begin_authentication()
    status = 422 if values["is_wrong"] else 200
    return render(request, "organisation/passkey_login.html", values, status=status)
