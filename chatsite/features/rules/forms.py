"""What a person chooses about rules: for a conversation, and for all new ones."""

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memory.engine import policy
from memory.engine.blank import is_blank
from memory.engine.rules.detection import MAX_CHARS

from .store import MOST_OWN


def make_policy_field() -> forms.ChoiceField:
    """What becomes of rules that are stated in one conversation."""
    return forms.ChoiceField(
        label=_("Rules that you state"),
        choices=[
            ("", _("As the preset says")),
            *policy.list_choices(policy.RULES, gettext),
        ],
        required=False,
    )


def make_preference_field() -> forms.ChoiceField:
    """The same for new conversations."""
    return forms.ChoiceField(
        label=_("Rules found in your messages"),
        choices=[("", _("Site default")), *policy.list_choices(policy.RULES, gettext)],
        required=False,
    )


class OwnRulesField(forms.CharField):
    """A list of a person's own rules, one a line."""

    def __init__(self) -> None:
        super().__init__(
            label=_("Your own rules"),
            widget=forms.Textarea(attrs={"rows": 3, "dir": "auto"}),
            required=False,
            help_text=_("One per line, such as “Answer in British English.”"),
        )

    def clean(self, value: object) -> str:
        lines = [line.strip() for line in super().clean(value).splitlines()]
        lines = list(dict.fromkeys(line for line in lines if not is_blank(line)))
        longest = max(map(len, lines), default=0)
        if len(lines) > MOST_OWN or longest > MAX_CHARS:
            values = {"count": MOST_OWN, "limit": MAX_CHARS}
            text = _("At most %(count)s rules of up to %(limit)s characters each.")
            raise forms.ValidationError(text, params=values)
        return "\n".join(lines)


def make_switch() -> forms.BooleanField:
    """Whether new conversations begin with the list."""
    return forms.BooleanField(
        label=_("Use my rules in new conversations"), required=False
    )


PREFERENCE_FIELDS = {
    "rules": make_preference_field,
    "own_rules": OwnRulesField,
    "with_own_rules": make_switch,
}
