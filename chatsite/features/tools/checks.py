"""Checks of the settings that name tools."""

from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register

from . import registry


@register()
def check_tools(**kwargs: Any) -> list[CheckMessage]:
    messages: list[CheckMessage] = [
        Error(
            f"TOOLS: {problem}.",
            hint="Each is the dotted path of a function with a docstring or of a "
            "LangChain tool.",
            id="chat.E004",
        )
        for problem in registry.problems()
    ]
    return [*messages, *_check_defaults()]


def _check_defaults() -> Iterator[CheckMessage]:
    """Tools of servers have their names from them, and may not be known yet."""
    for name in registry.missing(settings.DEFAULT_TOOLS):
        if not registry.can_come(name):
            known = ", ".join(sorted(registry.available()))
            yield Warning(
                f"DEFAULT_TOOLS has {name!r}, which is no tool of the site.",
                hint=f"Those that there are: {known}.",
                id="chat.W010",
            )
