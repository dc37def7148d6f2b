"""The settings of facts: for a conversation, and for all new ones."""

from django.utils.translation import gettext_lazy as _

from chatsite.features.statements.parts import make_choice
from memory.engine import policy

make_fact_policy_field = make_choice(
    _("Facts about you"), _("As the preset says"), policy.FACTS
)
make_fact_preference_field = make_choice(
    _("Facts about you, across conversations"), _("Site default"), policy.FACTS
)
