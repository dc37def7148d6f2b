"""Forms of the second factor. Wrong codes count and lock like wrong passwords."""

from typing import Any

from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import validate_totp_code
from axes.handlers.proxy import AxesProxyHandler
from django import forms
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.signals import user_login_failed
from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from chatsite.accounts.forms import PasswordForm

WRONG = _("This code is wrong, was used before, or is too old.")
# Used codes of an app that are remembered: more than can be valid at once.
REMEMBERED = 4


def make_code_field() -> forms.CharField:
    attributes = {"autocomplete": "one-time-code", "inputmode": "numeric"}
    widget = forms.TextInput(attrs=attributes)
    return forms.CharField(label=_("Code"), max_length=20, widget=widget)


class CodeForm(forms.Form):
    """A form for a code of the app or a recovery code, each accepted once."""

    code = make_code_field()

    def __init__(
        self, request: HttpRequest, user: AbstractBaseUser, *args: Any, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.request, self.user = request, user

    def clean_code(self) -> str:
        code = self.cleaned_data["code"].replace(" ", "")
        credentials = {"username": self.user.get_username()}
        AxesProxyHandler.update_request(self.request)
        if not AxesProxyHandler.is_allowed(self.request, credentials):
            self.request.axes_locked_out = True
            self.request.axes_credentials = credentials
            raise forms.ValidationError(WRONG)
        found = find_authenticator(self.user, code)
        if found is None:
            user_login_failed.send(
                sender=__name__, credentials=credentials, request=self.request
            )
            raise forms.ValidationError(WRONG)
        self.authenticator = found
        return code


@transaction.atomic
def find_authenticator(user: AbstractBaseUser, code: str) -> Authenticator | None:
    """Return the app or recovery codes that the code belongs to, or None.

    The code is then used up, for all processes.
    """
    rows = Authenticator.objects.select_for_update().filter(user=user.pk)
    for row in rows.order_by("type"):
        if row.type == Authenticator.Type.WEBAUTHN:
            continue
        if code in row.data.get("used_codes", ()) or not row.wrap().validate_code(code):
            continue
        row.refresh_from_db()
        if row.type == Authenticator.Type.TOTP:
            used = [*row.data.get("used_codes", ()), code]
            row.data["used_codes"] = used[-REMEMBERED:]
            row.save(update_fields=["data"])
        return row
    return None


class NewFactorForm(PasswordForm):
    """A form for a new factor that also asks for the password, if there is one.

    A session alone must not be enough to lock its user out.
    """

    def __init__(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().__init__(request, *args, **kwargs)
        if not request.user.has_usable_password():
            del self.fields["password"]


class SetupForm(NewFactorForm):
    code = make_code_field()
    field_order = ("code", "password")

    def __init__(self, *args: Any, secret: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.secret = secret

    def clean_code(self) -> str:
        code = self.cleaned_data["code"].replace(" ", "")
        if not validate_totp_code(self.secret, code):
            raise forms.ValidationError(WRONG)
        return code
