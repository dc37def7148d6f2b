"""What a person chooses about facts: for a conversation, and for all new ones."""

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memory.engine import policy


def make_fact_policy_field() -> forms.ChoiceField:
    """What becomes of facts in one conversation."""
    return forms.ChoiceField(
        label=_("Facts about you"),
        choices=[
            ("", _("As the preset says")),
            *policy.list_choices(policy.FACTS, gettext),
        ],
        required=False,
    )


def make_fact_preference_field() -> forms.ChoiceField:
    """The same for new conversations."""
    return forms.ChoiceField(
        label=_("Facts about you, across conversations"),
        choices=[("", _("Site default")), *policy.list_choices(policy.FACTS, gettext)],
        required=False,
    )
