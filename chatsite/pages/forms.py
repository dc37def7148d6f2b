"""What people type into forms, checked before anything is stored."""

import json
import re
from math import isfinite
from typing import Any

from django import forms
from django.conf import settings
from django.forms.fields import InvalidJSONInput
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memory.engine import policy
from memory.engine.blank import is_blank
from memory.engine.exceptions import PolicyError
from memory.models import Conversation

TITLE_MAX = Conversation._meta.get_field("title").max_length


def preset_choices() -> list[tuple[str, str]]:
    return policy.choices(gettext)


def preset_name(preset: str) -> str:
    """What stands before the colon, which not every language writes alike."""
    return re.split("[:：]", dict(preset_choices())[preset])[0].strip()


class TitleField(forms.CharField):
    """A name that can be seen; one without a visible character is none."""

    def to_python(self, value: object) -> str:
        title = super().to_python(value)
        return "" if is_blank(title) else title


class NewConversationForm(forms.Form):
    title = TitleField(
        label=_("Title"),
        max_length=TITLE_MAX,
        required=False,
        widget=forms.TextInput(
            attrs={
                "placeholder": _("Named after your first message"),
                "autocomplete": "off",
            }
        ),
    )
    preset = forms.ChoiceField(
        label=_("How it remembers"),
        choices=preset_choices,
        required=False,
        initial=policy.DEFAULT_PRESET,
    )

    # What is said at once; empty: nothing yet.
    first = forms.CharField(
        required=False, strip=False, widget=forms.HiddenInput, max_length=1_000
    )


class StorableField(forms.JSONField):
    """JSON that both databases hold and that every page can show again."""

    # Policies have three levels.
    MAX_DEPTH = 20

    def to_python(self, value: Any) -> Any:
        try:
            found = super().to_python(value)
            self._check(found)
        except (RecursionError, ValueError) as error:
            # Nested too deep, a number with thousands of digits, NUL, half a character.
            raise forms.ValidationError(
                self.error_messages["invalid"], code="invalid", params={"value": value}
            ) from error
        return found

    def bound_data(self, data: Any, initial: Any) -> Any:
        """What was refused is shown again as it was typed."""
        try:
            found = super().bound_data(data, initial)
            self._check(found)
        except (RecursionError, ValueError):
            return InvalidJSONInput(data)
        return found

    def _check(self, value: Any, depth: int = 0) -> None:
        if depth > self.MAX_DEPTH:
            raise ValueError("nested too deep")
        if isinstance(value, dict):
            value = [*value.keys(), *value.values()]
        if isinstance(value, list):
            for each in value:
                self._check(each, depth + 1)
        if isinstance(value, str):
            value.encode()
            if "\0" in value:
                raise ValueError("NUL")
        if isinstance(value, float) and not isfinite(value):
            raise ValueError("no number")


class OverridesField(StorableField):
    """Empty where there are none, not the word null."""

    def prepare_value(self, value: object) -> object:
        return "" if value is None else super().prepare_value(value)


class PolicyForm(forms.Form):
    """How a conversation is remembered: a preset, and settings of its own over it."""

    preset = forms.ChoiceField(label=_("How it remembers"), choices=preset_choices)
    no_compaction = forms.BooleanField(label=_("Never summarise"), required=False)
    no_recall = forms.BooleanField(
        label=_("Don't search earlier messages"), required=False
    )
    overrides = OverridesField(
        label=_("Override the preset (JSON)"),
        required=False,
        widget=forms.Textarea(
            attrs={
                "rows": 3,
                "spellcheck": "false",
                "placeholder": '{"trigger": ["tokens", 2000], "keep": ["turns", 3]}',
            }
        ),
    )

    # What was in force when the form was drawn.
    seen = StorableField(required=False, widget=forms.HiddenInput)

    @classmethod
    def of(cls, conversation: Conversation) -> "PolicyForm":
        own = conversation.policy
        if not isinstance(own, dict):
            return cls(initial={"overrides": own, "seen": own})
        own = dict(own)
        initial = {
            "seen": conversation.policy,
            "preset": own.pop("preset", policy.DEFAULT_PRESET),
            "no_compaction": own.pop("enabled", True) is False,
            "no_recall": own.get("recall_tokens") == 0,
        }
        if initial["no_recall"]:
            del own["recall_tokens"]
        return cls(initial={**initial, "overrides": own or None})

    def clean(self) -> dict[str, object]:
        values = super().clean()
        overrides = values.get("overrides") or {}
        if not isinstance(overrides, dict):
            raise forms.ValidationError(_("The settings must be a JSON object: {…}."))
        if "preset" not in values or "overrides" in self.errors:
            return values
        switched = {"enabled": False} if values["no_compaction"] else {}
        switched |= {"recall_tokens": 0} if values["no_recall"] else {}
        values["policy"] = {**overrides, **switched, "preset": values["preset"]}
        try:
            policy.Policy.load(values["policy"])
        except PolicyError as error:
            raise forms.ValidationError(error.say(gettext)) from error
        return values

    def seen_again(self, conversation: Conversation, why: str) -> "PolicyForm":
        """The form as it was filled in, told why it did not hold: sent once more it
        replaces what is in force by now."""
        data = self.data.copy()
        data["seen"] = json.dumps(conversation.policy)
        form = type(self)(data)
        preset = preset_name(conversation.get_policy().preset)
        now = _("It is “%(preset)s” now. Apply again to overwrite it.")
        form.add_error(None, f"{why} {now % {'preset': preset}}")
        return form


class UndoPolicyForm(forms.Form):
    # An empty policy is one, too, so none of them can be called required.
    policy = StorableField(required=False)
    seen = StorableField(required=False)

    def clean_policy(self) -> dict[str, object]:
        if not isinstance(self.cleaned_data["policy"], dict):
            raise forms.ValidationError(_("The settings must be a JSON object: {…}."))
        return self.cleaned_data["policy"]


class RenameForm(forms.Form):
    title = TitleField(max_length=TITLE_MAX)


class SearchForm(forms.Form):
    q = forms.CharField(max_length=TITLE_MAX, required=False)


class ListForm(SearchForm):
    """Which part of the list is asked for, and which conversation is open beside it."""

    view = forms.ChoiceField(choices=[("archived", "archived")], required=False)
    open = forms.UUIDField(required=False)
    show = forms.IntegerField(min_value=1, max_value=2_000, required=False)


class ImportForm(forms.Form):
    file = forms.FileField(
        label=_("File"),
        widget=forms.ClearableFileInput(attrs={"accept": ".json,.zip"}),
    )

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        limit, field = settings.IMPORT_MAX_MB, self.fields["file"]
        field.help_text = _("At most %(limit)s MB.") % {"limit": limit}
        too_large = _("The file is larger than %(limit)s MB.") % {"limit": limit}
        field.widget.attrs |= {
            "data-max-bytes": limit * 1024 * 1024,
            "data-too-large": too_large,
        }


class BranchForm(forms.Form):
    seq = forms.IntegerField(min_value=1, max_value=2**31 - 1)


class NumberForm(forms.Form):
    """The numbers that addresses carry; what no row can have is refused."""

    reply = forms.IntegerField(min_value=1, max_value=2**31 - 1, required=False)
    before = forms.IntegerField(min_value=1, max_value=2**63 - 1, required=False)
    after = forms.IntegerField(min_value=1, max_value=2**63 - 1, required=False)
    at = forms.IntegerField(min_value=1, max_value=2**31 - 1, required=False)
