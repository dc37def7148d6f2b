"""Preferences of a user: what new conversations begin with, and facts about the user.

New conversations begin with a model, a way to remember, tools and rules.
"""

from typing import Any

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.db.models import QuerySet
from django.http import HttpRequest

from chatsite import plugins
from chatsite.features.tools import registry
from chatsite.features.tools.context import find_zone
from chatsite.turns import model_access
from chatsite.turns.models import Preferences
from chatsite.turns.requests import name_to_store
from memory.engine import policy
from memory.sql import prepared_rows

# Those of them that an app offers.
APP_FIELDS = ("rules", "own_rules", "with_own_rules", "facts")
FIELDS = ("model", "preset", *APP_FIELDS)


def find_preferences(user: AbstractBaseUser) -> Preferences:
    """Return the user's preferences; an empty row, not saved, if nothing was chosen."""
    found = _select_preferences(user=user.pk)
    return found[0] if found else Preferences(user=user)


@prepared_rows()
def _select_preferences(user: Any) -> QuerySet[Preferences]:
    return Preferences.objects.filter(user=user)


def follow_browser(request: HttpRequest) -> Preferences:
    """Return the preferences of the request's user, with the browser's time zone.

    Tools need the time zone while there is no request. An unknown one is ignored.
    """
    preferred = find_preferences(request.user)
    zone = request.COOKIES.get("time_zone", "")
    if zone != preferred.time_zone and find_zone(zone):
        preferred, _ = Preferences.objects.update_or_create(
            user=request.user, defaults={"time_zone": zone}
        )
    return preferred


def values_for(user: AbstractBaseUser, **chosen: Any) -> dict[str, Any]:
    """Fields of a new conversation: what was chosen now, or else what is preferred."""
    preferred = find_preferences(user)
    preset = chosen.pop("preset", "") or preferred.preset
    model = chosen.pop("model", "") or preferred.model
    known = dict(policy.list_choices(policy.LABELS))
    models = model_access.list_granted_to(user.pk)
    has_facts = "facts" in plugins.form_fields["policy"]
    return {
        "tools": registry.defaults(),
        **chosen,
        "preset": preset if preset in known else "",
        "model": name_to_store(model) if model in models else "",
        "policy": {
            **({"rules": preferred.rules} if preferred.rules else {}),
            **({"facts": preferred.facts or settings.FACTS} if has_facts else {}),
        },
        "own_rules": preferred.own_rules.splitlines() * preferred.with_own_rules,
    }
