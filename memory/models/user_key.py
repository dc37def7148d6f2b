"""The key of a user in rows that outlive the account."""

from typing import Any

from django.conf import settings
from django.db import models


def nullable_user(name: Any, **options: Any) -> models.ForeignKey:
    """Return the key of a user that is null once the account is gone."""
    options = {"related_name": "+", "verbose_name": name, **options}
    return models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, **options
    )
