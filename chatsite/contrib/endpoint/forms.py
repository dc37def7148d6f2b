"""The form for a new API key."""

import re

from django import forms
from django.core.exceptions import ValidationError
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext_lazy

from . import keys
from .models import ApiKey


def _name_days(days: int) -> object:
    if not days:
        return gettext_lazy("Until you revoke it")
    return ngettext_lazy("%(n)s day", "%(n)s days", days) % {"n": days}


class ApiKeyForm(forms.Form):
    name = forms.CharField(
        label=capfirst(gettext_lazy("name")),
        max_length=ApiKey._meta.get_field("name").max_length,
        help_text=gettext_lazy(
            "The client that will use it, such as “Open WebUI”. Its conversations "
            "have this name in your list."
        ),
        widget=forms.TextInput(attrs={"dir": "auto", "autocomplete": "off"}),
    )
    mode = forms.ChoiceField(
        label=gettext_lazy("What is sent"),
        choices=ApiKey.Mode.choices,
        initial=ApiKey.Mode.OBSERVE,
        help_text=gettext_lazy(
            "Shorten when too long: what no longer fits the model's window is "
            "replaced by summaries."
        ),
    )
    days = forms.TypedChoiceField(
        label=gettext_lazy("Valid for"),
        coerce=int,
        choices=[(days, _name_days(days)) for days in keys.DAYS],
        initial=90,
    )
    may_read = forms.BooleanField(
        label=gettext_lazy("It may also read your conversations"), required=False
    )
    tokens_per_day = forms.IntegerField(
        label=capfirst(gettext_lazy("tokens per day")),
        min_value=1,
        max_value=2_000_000_000,
        required=False,
        help_text=gettext_lazy("Leave empty for your own limit."),
    )
    models_allowed = forms.CharField(
        label=gettext_lazy("Models"),
        required=False,
        max_length=4_000,
        help_text=gettext_lazy(
            "Names of models, separated by commas. Leave empty for all models of "
            "the provider."
        ),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )

    def clean_models_allowed(self) -> list[str]:
        names = re.split(r"[,\s]+", self.cleaned_data["models_allowed"])
        names = [name for name in dict.fromkeys(names) if name]
        if len(names) > keys.MAX_MODELS:
            text = _("Name at most %(limit)s models, or none.")
            raise ValidationError(text % {"limit": keys.MAX_MODELS})
        return names
