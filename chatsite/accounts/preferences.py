"""What a person's new conversations begin with: a model, a way to remember, tools."""

from typing import Any

from django.contrib.auth.models import AbstractBaseUser

from chatsite.llm import providers
from chatsite.tools import registry
from chatsite.turns.models import Preferences
from memory.engine import policy


def of(user: AbstractBaseUser) -> Preferences:
    """The person's choice; an empty one, not saved, where nothing was chosen."""
    return Preferences.objects.filter(user=user).first() or Preferences(user=user)


def values_for(user: AbstractBaseUser, **chosen: str) -> dict[str, Any]:
    """Fields of a new conversation: what was chosen now, or else what is preferred."""
    preferred = of(user)
    preset = chosen.pop("preset", "") or preferred.preset
    known = dict(policy.choices())
    return {
        **chosen,
        "preset": preset if preset in known else "",
        "model": preferred.model if preferred.model in providers.models() else "",
        "tools": registry.defaults(),
    }
