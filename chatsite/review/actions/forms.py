"""The forms of the staff's actions."""

import hashlib
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from .services import RebuildCause

MAX_NOTE = 2_000
CODE_CHARS = 8


class ActionForm(forms.Form):
    """`code`: has to be typed to confirm, where the action asks for that."""

    def __init__(self, *args: Any, code: str = "", **options: Any) -> None:
        super().__init__(*args, **options)
        self.expected = code


class RebuildForm(ActionForm):
    # Nothing is chosen at first: a cause chosen by mistake would be worse than none.
    cause = forms.ChoiceField(
        label=gettext_lazy("Reason"), choices=[("", "…"), *RebuildCause.choices]
    )


class ReviewForm(ActionForm):
    note = forms.CharField(
        label=gettext_lazy("Note"),
        required=False,
        max_length=MAX_NOTE,
        widget=forms.Textarea(attrs={"rows": 2, "cols": 60}),
    )


class PurgeForm(ActionForm):
    """A form that erases the conversations, or a user, once their code was typed."""

    reason = forms.CharField(
        label=gettext_lazy("Reason"),
        max_length=MAX_NOTE,
        help_text=gettext_lazy(
            "Kept with the deletion record. Don't quote message text."
        ),
        widget=forms.Textarea(attrs={"rows": 2, "cols": 60}),
    )
    code = forms.CharField(
        label=gettext_lazy("To confirm, type the code above"),
        max_length=40,
        widget=forms.TextInput(attrs={"autocomplete": "off", "size": CODE_CHARS}),
    )

    def clean_code(self) -> str:
        typed = self.cleaned_data["code"].strip().lower()
        if typed != self.expected:
            text = _("This is not the code: type %(code)s.")
            raise forms.ValidationError(text % {"code": self.expected})
        return typed


def code_of(uuids: Sequence[UUID]) -> str:
    """Return the beginning of the uuid; of several, a code that depends on all."""
    texts = sorted(map(str, uuids))
    if len(texts) == 1:
        return texts[0][:CODE_CHARS]
    return hashlib.sha256("".join(texts).encode()).hexdigest()[:CODE_CHARS]


def first_error(form: forms.Form) -> str:
    name, errors = next(iter(form.errors.items()))
    label = form.fields[name].label if name in form.fields else ""
    return f"{label}: {errors[0]}" if label else str(errors[0])
