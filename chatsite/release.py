"""The release of the site that runs."""

import tomllib
from functools import cache

from django.conf import settings

UNKNOWN = "unknown"


@cache
def find_version() -> str:
    try:
        text = (settings.BASE_DIR / "pyproject.toml").read_text(encoding="utf-8")
        return str(tomllib.loads(text)["project"]["version"])
    except (OSError, ValueError, KeyError):
        return UNKNOWN
