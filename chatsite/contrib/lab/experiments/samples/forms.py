"""Forms of a sample: its conversations, and the policies to try with it."""

import random
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.text import capfirst
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from chatsite.llm import providers
from chatsite.pages.forms import OverridesField, preset_choices
from memory.engine.exceptions import PolicyError
from memory.engine.policy import Policy

MAX_CONVERSATIONS = 30
MAX_POLICIES = 4
MAX_SEED = 999_999


def _list_presets() -> list[tuple[str, Any]]:
    return [("", _("Any")), *preset_choices()]


def _list_models() -> list[tuple[str, Any]]:
    names = providers.list_models()
    return [("", _("Any")), *((name, providers.name_model(name)) for name in names)]


class SampleForm(forms.Form):
    """The filters and the number of the conversations to draw."""

    number = forms.IntegerField(
        label=capfirst(_("conversations")),
        min_value=1,
        max_value=MAX_CONVERSATIONS,
        initial=10,
        help_text=_("With fewer than 5, no policy is called better."),
    )
    seed = forms.IntegerField(
        label=capfirst(_("seed")),
        min_value=0,
        max_value=MAX_SEED,
        initial=lambda: random.randrange(MAX_SEED),  # noqa: S311
        help_text=_("The same seed draws the same conversations again."),
    )
    least = forms.IntegerField(
        label=_("With at least so many messages"),
        min_value=2,
        max_value=100_000,
        initial=20,
    )
    days = forms.IntegerField(
        label=_("Changed in the last days"),
        min_value=1,
        max_value=10_000,
        required=False,
    )
    preset = forms.ChoiceField(
        label=_("Preset of the conversation"), choices=_list_presets, required=False
    )
    model = forms.ChoiceField(label=_("Model"), choices=_list_models, required=False)
    # The estimated tokens that were shown: starting requires that they still match.
    agreed = forms.IntegerField(required=False, widget=forms.HiddenInput)


class TriedPolicyForm(forms.Form):
    """One policy: a preset, and settings over it."""

    preset = forms.ChoiceField(
        label=_("Preset"),
        choices=lambda: [("", capfirst(_("none"))), *preset_choices()],
        required=False,
    )
    overrides = OverridesField(rows=2, cols=60)

    def clean(self) -> dict[str, Any]:
        values = super().clean()
        overrides = values.get("overrides") or {}
        if not isinstance(overrides, dict):
            raise ValidationError(_("The settings must be a JSON object: {…}."))
        if not values.get("preset"):
            if overrides:
                raise ValidationError(_("Choose a preset for these settings."))
            return values
        values["policy"] = {**overrides, "preset": values["preset"]}
        try:
            Policy.load(values["policy"])
        except PolicyError as error:
            raise ValidationError(error.render(gettext)) from error
        return values


class _Policies(forms.BaseFormSet):
    def clean(self) -> None:
        if not any(self.errors) and not self.list_policies():
            raise ValidationError(_("Choose at least one policy to try."))

    def list_policies(self) -> list[dict[str, Any]]:
        """Return the policies that were filled in, in their order."""
        found = (form.cleaned_data.get("policy") for form in self.forms)
        return [policy for policy in found if policy]


TriedPolicies = forms.formset_factory(
    TriedPolicyForm,
    formset=_Policies,
    extra=MAX_POLICIES,
    max_num=MAX_POLICIES,
    absolute_max=MAX_POLICIES,
)
