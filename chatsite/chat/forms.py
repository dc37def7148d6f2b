"""What people type into forms, checked before anything is stored."""

from django import forms
from django.contrib.auth import get_user_model
from django.contrib.auth.forms import UserCreationForm

from memory.engine import policy
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
