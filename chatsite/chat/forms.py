"""What people type into forms, checked before anything is stored."""

from django import forms
from django.contrib.auth import get_user_model
from django.contrib.auth.forms import UserCreationForm
from django.utils.translation import gettext_lazy as _

from memory.engine import policy
from memory.engine.exceptions import PolicyError
from memory.models import Conversation

TITLE_MAX = Conversation._meta.get_field("title").max_length


class NewConversationForm(forms.Form):
    title = forms.CharField(
        label="Title",
        max_length=TITLE_MAX,
        required=False,
        widget=forms.TextInput(
            attrs={
                "placeholder": "Named after your first message",
                "autocomplete": "off",
            }
        ),
    )
    preset = forms.ChoiceField(
        label="How it remembers",
        choices=policy.choices,
        required=False,
        initial=policy.DEFAULT_PRESET,
    )


class PolicyForm(forms.Form):
    """How a conversation is remembered: a preset, and settings of its own over it."""

    preset = forms.ChoiceField(label=_("How it remembers"), choices=policy.choices)
    no_folding = forms.BooleanField(label=_("Never summarise"), required=False)
    no_recall = forms.BooleanField(
        label=_("Do not search earlier messages for each reply"), required=False
    )
    overrides = forms.JSONField(
        label=_("Settings over the preset, as JSON"),
        required=False,
        widget=forms.Textarea(
            attrs={
                "rows": 3,
                "spellcheck": "false",
                "placeholder": '{"trigger": ["tokens", 2000], "keep": ["turns", 3]}',
            }
        ),
    )

    @classmethod
    def of(cls, conversation: Conversation) -> "PolicyForm":
        own = conversation.policy
        if not isinstance(own, dict):
            return cls(initial={"overrides": own})
        own = dict(own)
        initial = {
            "preset": own.pop("preset", policy.DEFAULT_PRESET),
            "no_folding": own.pop("enabled", True) is False,
            "no_recall": own.get("recall_tokens") == 0,
        }
        if initial["no_recall"]:
            del own["recall_tokens"]
        return cls(initial={**initial, "overrides": own or None})

    def clean(self) -> dict[str, object]:
        values = super().clean()
        overrides = values.get("overrides") or {}
        if not isinstance(overrides, dict):
            raise forms.ValidationError("The settings must be a JSON object: {…}.")
        if "preset" not in values or "overrides" in self.errors:
            return values
        switched = {"enabled": False} if values["no_folding"] else {}
        switched |= {"recall_tokens": 0} if values["no_recall"] else {}
        values["policy"] = {**overrides, **switched, "preset": values["preset"]}
        try:
            policy.Policy.load(values["policy"])
        except PolicyError as error:
            raise forms.ValidationError(str(error)) from error
        return values


class RenameForm(forms.Form):
    title = forms.CharField(max_length=TITLE_MAX)


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


class BranchForm(forms.Form):
    seq = forms.IntegerField(min_value=1, max_value=2**31 - 1)


class NumberForm(forms.Form):
    """The numbers that addresses carry; what no row can have is refused."""

    reply = forms.IntegerField(min_value=1, max_value=2**31 - 1, required=False)
    before = forms.IntegerField(min_value=1, max_value=2**63 - 1, required=False)
    after = forms.IntegerField(min_value=1, max_value=2**63 - 1, required=False)
    at = forms.IntegerField(min_value=1, max_value=2**31 - 1, required=False)


class SignupForm(UserCreationForm):
    class Meta(UserCreationForm.Meta):
        model = get_user_model()
        fields = ("username",)
