"""The form to choose who answers which examples."""

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from chatsite.pages.forms import preset_choices
from chatsite.turns import model_access


def list_policies() -> list[tuple[str, Any]]:
    return [("", _("The request as it was sent")), *preset_choices()]


class AnswerForm(forms.Form):
    """The model that answers, and how the requests are made."""

    model = forms.ChoiceField(label=gettext_lazy("Model"))
    preset = forms.ChoiceField(
        label=gettext_lazy("What is sent"), choices=list_policies, required=False
    )

    def __init__(self, user_id: int, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["model"].choices = model_access.list_choices_for(user_id)
