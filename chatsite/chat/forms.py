"""What people type into forms, checked before anything is stored."""

from django import forms
from django.contrib.auth import get_user_model
from django.contrib.auth.forms import UserCreationForm

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

    preset = forms.ChoiceField(label="How it remembers", choices=policy.choices)
    overrides = forms.JSONField(
        label="Settings over the preset, as JSON",
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
        own = dict(conversation.policy)
        preset = own.pop("preset", policy.DEFAULT_PRESET)
        return cls(initial={"preset": preset, "overrides": own or None})

    def clean(self) -> dict[str, object]:
        values = super().clean()
        overrides = values.get("overrides") or {}
        if not isinstance(overrides, dict):
            raise forms.ValidationError("The settings must be a JSON object: {…}.")
        if "preset" not in values or "overrides" in self.errors:
            return values
        values["policy"] = {**overrides, "preset": values["preset"]}
        try:
            policy.Policy.load(values["policy"])
        except PolicyError as error:
            raise forms.ValidationError(str(error)) from error
        return values


class RenameForm(forms.Form):
    title = forms.CharField(max_length=TITLE_MAX)


class SearchForm(forms.Form):
    q = forms.CharField(max_length=TITLE_MAX, required=False)


class NumberForm(forms.Form):
    """The numbers that addresses carry; what no row can have is refused."""

    reply = forms.IntegerField(min_value=1, max_value=2**31 - 1, required=False)
    before = forms.IntegerField(min_value=1, max_value=2**63 - 1, required=False)


class SignupForm(UserCreationForm):
    class Meta(UserCreationForm.Meta):
        model = get_user_model()
        fields = ("username",)
