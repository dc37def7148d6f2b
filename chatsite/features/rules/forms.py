"""The settings of rules: for a conversation, and for all new ones."""

from django import forms
from django.utils.translation import gettext_lazy as _

from chatsite.features.statements.parts import make_choice
from memory.engine import policy
from memory.engine.blank import is_blank
from memory.engine.rules.detection import MAX_CHARS

from .store import MOST_OWN


class OwnRulesField(forms.CharField):
    """A list of a user's own rules, one per line."""

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
    """Return the field for using the list in new conversations."""
    return forms.BooleanField(
        label=_("Use my rules in new conversations"), required=False
    )


make_policy_field = make_choice(
    _("Rules that you state"), _("As the preset says"), policy.RULES
)
PREFERENCE_FIELDS = {
    "rules": make_choice(
        _("Rules found in your messages"), _("Site default"), policy.RULES
    ),
    "own_rules": OwnRulesField,
    "with_own_rules": make_switch,
}
