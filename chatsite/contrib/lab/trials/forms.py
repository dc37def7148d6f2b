"""The form of a trial: the parts of a request that are to be different."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from chatsite.pages.forms import MultilineField, TemperatureField
from chatsite.turns import model_access
from memory.engine.policy import LABELS, list_choices
from memory.view.variation import Variation

# What is done with one message, and the field of a variation that has its number.
ACTS = {
    "edit": ("edited", _("Reword it")),
    "leave-out": ("left_out", _("Leave it out")),
    "bring-back": ("brought_back", _("Bring it back")),
}


class TrialForm(forms.Form):
    """The differences of a trial; a field that is not changed changes nothing."""

    model = forms.ChoiceField(label=_("Model"), required=False)
    temperature = TemperatureField()
    preset = forms.ChoiceField(label=_("Memory settings"), required=False)
    without_recall = forms.BooleanField(
        label=_("Without notes from earlier messages"), required=False
    )
    without_summaries = forms.BooleanField(label=_("Without summaries"), required=False)
    act = forms.ChoiceField(label=_("Change one message"), required=False)
    message = forms.IntegerField(
        label=_("Number of the message"),
        min_value=1,
        max_value=2**31 - 1,
        required=False,
    )
    text = MultilineField(label=_("New words"), required=False, strip=False)

    def __init__(self, user_id: int, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        same = ("", _("Unchanged"))
        models = model_access.list_choices_for(user_id)
        self.fields["model"].choices = [same, *models]
        self.fields["preset"].choices = [same, *list_choices(LABELS, _)]
        acts = [(name, words) for name, (_field, words) in ACTS.items()]
        self.fields["act"].choices = [same, *acts]

    def clean(self) -> dict[str, Any]:
        values = super().clean()
        if values.get("act") and not values.get("message"):
            self.add_error("message", _("Give the number of the message."))
        return values

    @property
    def variation(self) -> Variation:
        said = dict(self.cleaned_data)
        act, seq, text = (said.pop(name) for name in ("act", "message", "text"))
        if act:
            said[ACTS[act][0]] = seq
        return Variation(**said, text=text if act == "edit" else "")

    @property
    def complaint(self) -> str:
        """Return the errors of the form in one line."""
        wrong = [f"{self[name].label}: {why[0]}" for name, why in self.errors.items()]
        return " ".join(wrong)
