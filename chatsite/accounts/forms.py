"""Forms of the account page."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib.auth import authenticate, get_user_model
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.forms import PasswordChangeForm, UserCreationForm
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from chatsite.llm import providers
from chatsite.plugins import form_fields
from chatsite.turns import model_access
from chatsite.turns.models import Preferences
from memory.engine import policy

from .names import INVISIBLE, TakenNameError, find_free_names, save_account
from .preferences import APP_FIELDS, FIELDS


class PreferencesForm(forms.ModelForm):
    """Preferences for new conversations; only what the site offers can be chosen."""

    class Meta:
        model = Preferences
        fields = FIELDS

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        site = providers.name_model(providers.default_model())
        models = model_access.list_choices_for(self.instance.pk)
        own = _("Site default (%(model)s)") % {"model": site}
        self.fields["model"] = forms.ChoiceField(
            label=_("Model"), choices=[("", own), *models], required=False
        )
        self.fields["preset"] = forms.ChoiceField(
            label=_("How it remembers"),
            choices=[("", _("Site default")), *policy.list_presets(gettext)],
            required=False,
        )
        for name in APP_FIELDS:
            del self.fields[name]
        made = {name: make() for name, make in form_fields["preferences"].items()}
        self.fields |= made


class EnterForm(forms.ModelForm):
    """The meaning of Enter in the message box, in every browser."""

    class Meta:
        model = Preferences
        fields = ("enter_breaks_line",)
        labels = {
            "enter_breaks_line": _(
                "Enter starts a new line; Ctrl+Enter or Cmd+Enter sends the message"
            )
        }


class PasswordForm(forms.Form):
    """The user's password, required before what can't be undone."""

    password = forms.CharField(
        label=_("Your password"),
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )

    def __init__(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.request = request
        if not request.user.has_usable_password():
            # Who logs in elsewhere has none here.
            self.fields["password"] = forms.CharField(
                label=_("Your user name, to confirm")
            )

    def clean_password(self) -> str:
        password, user = self.cleaned_data["password"], self.request.user
        if not user.has_usable_password():
            if password != user.get_username():
                raise forms.ValidationError(_("This is not your user name."))
        elif not is_own_password(self.request, password):
            raise forms.ValidationError(_("This is not your password."))
        return password


class ChangePasswordForm(PasswordChangeForm):
    """Django's form, which would let a stolen session guess without an end."""

    def __init__(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.request = request

    def clean_old_password(self) -> str:
        password = self.cleaned_data["old_password"]
        if not is_own_password(self.request, password):
            raise forms.ValidationError(
                self.error_messages["password_incorrect"], code="password_incorrect"
            )
        return password


def is_own_password(request: HttpRequest, password: str) -> bool:
    """Asked like a log-in, so that wrong guesses count and lock in the same way."""
    name = request.user.get_username()
    return authenticate(request, username=name, password=password) is not None


class SignupForm(UserCreationForm):
    TAKEN = _("This name looks like one that is taken. Choose another one.")

    class Meta(UserCreationForm.Meta):
        model = get_user_model()
        fields = ("username",)

    def clean_username(self) -> str:
        """Refuse a name that people would take for another account's."""
        # None where the name is taken, which is an error already.
        name = super().clean_username() or ""
        if INVISIBLE.search(name):
            raise forms.ValidationError(
                _("This name has a letter that can't be seen. Write it without.")
            )
        if not find_free_names([name]):
            raise forms.ValidationError(self.TAKEN)
        return name

    def create_account(
        self,
        create: Callable[["SignupForm"], AbstractBaseUser] = lambda form: save_account(
            form.save(commit=False)
        ),
    ) -> AbstractBaseUser | None:
        """Return the new account, or None if the name was taken in the meantime.

        The form then has an error.
        """
        try:
            return create(self)
        except TakenNameError:
            self.add_error("username", self.TAKEN)
            return None

    def validate_password_for_user(self, user: AbstractBaseUser, **_: object) -> None:
        """Said beside the first field, where it is mended."""
        super().validate_password_for_user(user, "password1")
