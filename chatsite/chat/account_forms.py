"""Forms of the account page."""

from typing import Any

from django import forms
from django.contrib.auth import authenticate
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from chatsite.llm import providers

from . import preferences
from .forms import preset_choices
from .models import Preferences


class PreferencesForm(forms.ModelForm):
    """What new conversations begin with; only what the site offers can be chosen."""

    class Meta:
        model = Preferences
        fields = ("model", "preset")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        site = providers.label(providers.default_model())
        models = [(name, providers.label(name)) for name in preferences.models()]
        own = _("The site's choice (%(model)s)") % {"model": site}
        self.fields["model"] = forms.ChoiceField(
            label=_("Model"),
            choices=[("", own), *models],
            required=False,
        )
        self.fields["preset"] = forms.ChoiceField(
            label=_("How it remembers"),
            choices=[("", _("The site's choice")), *preset_choices()],
            required=False,
        )


class PasswordForm(forms.Form):
    """The person's password, asked before what can not be taken back."""

    password = forms.CharField(
        label=_("Your password"),
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )

    def __init__(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.request = request

    def clean_password(self) -> str:
        """Asked like a log-in, so that guessing is locked out in the same way."""
        password = self.cleaned_data["password"]
        name = self.request.user.get_username()
        if authenticate(self.request, username=name, password=password) is None:
            raise forms.ValidationError(_("This is not your password."))
        return password
