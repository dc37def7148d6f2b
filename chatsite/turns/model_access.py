"""The access check for models, made before every request that a user pays for.

A user may use the models that PROVIDERS_FILE has for all users, and for the groups that
they are in, unless staff have switched a model off.
"""

from django.contrib.auth.models import Group
from django.utils.translation import gettext as _

from chatsite import plugins
from chatsite.llm import providers
from chatsite.protocol.errors import CommandError, explain_code

DENIED, OFF = "model_denied", "model_off"
# The word for models in guards and sources.
KIND = "model"


def may_use(user_id: int, name: str) -> bool:
    return not find_model_refusal(user_id, name)


def find_model_refusal(user_id: int, name: str) -> str:
    """Return the code of why the user may not use the model; "": no reason."""
    if plugins.is_switched_off(KIND, name):
        return OFF
    return "" if _is_granted(user_id, name) else DENIED


def _is_granted(user_id: int, name: str) -> bool:
    if providers.is_demo(name):
        return True
    if providers.find_provider(name) is None:
        return False
    groups = providers.find_model(name).groups
    return not groups or not _find_groups(user_id).isdisjoint(groups)


def check_model(user_id: int, name: str) -> None:
    """Raise CommandError for a model that the user may not use."""
    if refusal := find_model_refusal(user_id, name):
        raise CommandError(refusal, explain_code(refusal))


def list_models_for(user_id: int) -> list[str]:
    """Return the models that the user can choose from."""
    names = list_granted_to(user_id)
    return [name for name in names if not plugins.is_switched_off(KIND, name)]


def list_granted_to(user_id: int) -> list[str]:
    """Return the models granted to the user, also those that are switched off."""
    names = providers.list_models()
    restricted = {name: providers.find_model(name).groups for name in names}
    own = _find_groups(user_id) if any(restricted.values()) else frozenset()
    return [
        name
        for name, groups in restricted.items()
        if not groups or not own.isdisjoint(groups)
    ]


def list_choices_for(user_id: int, current: str = "") -> list[tuple[str, str]]:
    """Return the user's models with their names on pages, and the `current` one.

    The site may not have the `current` model any more.
    """
    choices = [(name, providers.name_model(name)) for name in list_models_for(user_id)]
    if current and current not in dict(choices):
        label = providers.name_model(current)
        refusal = find_model_refusal(user_id, current)
        if refusal == OFF:
            label = _("%(model)s (switched off)") % {"model": label}
        elif refusal:
            label = _("%(model)s (not available)") % {"model": label}
        choices.append((current, label))
    return choices


def _find_groups(user_id: int) -> frozenset[str]:
    rows = Group.objects.filter(user=user_id).order_by()
    return frozenset(rows.values_list("name", flat=True))
