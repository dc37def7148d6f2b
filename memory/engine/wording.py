"""Translatable sentences: a template and the values of its placeholders.

The engine speaks English; the caller that shows a sentence to users translates it.
"""

import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


def gettext_noop(text: str) -> str:
    """Mark a template for the translation catalogs, which look for this name."""
    return text


_ = gettext_noop


def shorten_value(value: object) -> str:
    """Return the repr of a wrong value, shortened where it is long."""
    return reprlib.repr(value)


@dataclass(frozen=True, slots=True)
class TranslatableText:
    """A template with its values, some of which may be translatable texts, too."""

    template: str
    values: Mapping[str, object] = field(default_factory=dict)

    def render(self, translate: Callable[[str], str] = str) -> str:
        """Return the sentence with all sentences inside it, translated."""
        template = translate(self.template) if self.template else ""
        values = {
            name: value.render(translate)
            if isinstance(value, TranslatableText)
            else value
            for name, value in self.values.items()
        }
        return template % values if values else template


REASONS = {
    "bool_type": _("expected true or false"),
    "datetime_from_date_parsing": _("expected a time such as 2026-01-31T12:00:00Z"),
    "datetime_parsing": _("expected a time such as 2026-01-31T12:00:00Z"),
    "datetime_type": _("expected a time such as 2026-01-31T12:00:00Z"),
    "dict_type": _("expected an object"),
    "extra_forbidden": _("there is no such setting"),
    "float_type": _("expected a number"),
    "greater_than_equal": _("expected %(ge)s or more"),
    "int_from_float": _("expected a whole number"),
    "int_parsing": _("expected a whole number"),
    "int_type": _("expected a whole number"),
    "less_than_equal": _("expected %(le)s or less"),
    "list_type": _("expected a list"),
    "literal_error": _("expected one of %(expected)s"),
    "missing": _("it is missing"),
    "model_type": _("expected an object"),
    "out_of_time": _("expected a time between 1970 and 2200"),
    "string_pattern_mismatch": _("expected a text of the form %(pattern)s"),
    "string_too_long": _("expected at most %(max_length)s characters"),
    "string_too_short": _("expected at least %(min_length)s characters"),
    "string_type": _("expected a text"),
    "timezone_aware": _("expected a time with its zone"),
    "too_deep": _("it is nested too deeply"),
    "too_large": _("it is too large"),
    "too_long": _("expected at most %(max_length)s entries"),
    "too_short": _("expected at least %(min_length)s entries"),
}


def explain_refusal(error: Mapping[str, Any]) -> TranslatableText:
    """Return why pydantic refused a value.

    `error` is an item of ValidationError.errors().
    """
    template = REASONS.get(error["type"], "")
    if not template:
        return TranslatableText("%(message)s", {"message": error["msg"]})
    values = {name: str(value) for name, value in error.get("ctx", {}).items()}
    if "expected" in values:
        values["expected"] = values["expected"].replace(" or ", ", ")
    return TranslatableText(template, values)
