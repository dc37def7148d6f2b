"""All errors that the engine raises on purpose.

EngineError
├── PolicyError        a policy with a wrong value; also a ValueError
└── SummaryError       the summariser's reply cannot become memory
├── EmptySummary
├── ErrorSummary
├── RefusedSummary
├── TruncatedSummary
└── OverlongSummary
"""

from collections.abc import Callable
from typing import Self

from pydantic import ValidationError

from .wording import TranslatableText, explain_refusal, shorten_value
from .wording import gettext_noop as _


class EngineError(Exception):
    """Base of the errors below; anything else that escapes is a bug."""

    def __init__(self, template: str = "", **values: object) -> None:
        self.wording = TranslatableText(template, values)
        super().__init__(self.wording.render())

    def render(self, translate: Callable[[str], str]) -> str:
        """Return the message in the language of `translate`."""
        return self.wording.render(translate)


class PolicyError(EngineError, ValueError):
    """A wrong value of a policy and what was expected. Raised at construction."""

    @classmethod
    def from_validation_error(cls, error: ValidationError) -> Self:
        """Return an error with each fault after the name of its setting."""
        parts = {}
        for item in error.errors(include_url=False):
            cause = item.get("ctx", {}).get("error")
            if isinstance(cause, PolicyError):
                wrong = cause.wording
            else:
                values = {
                    "value": shorten_value(item["input"]),
                    "why": explain_refusal(item),
                }
                wrong = TranslatableText(_("%(value)s: %(why)s"), values)
            if item["loc"]:
                values = {"name": item["loc"][0], "wrong": wrong}
                wrong = TranslatableText(_("%(name)s: %(wrong)s"), values)
            parts[f"part_{len(parts)}"] = wrong
        return cls("; ".join(f"%({name})s" for name in parts), **parts)


class SummaryError(EngineError):
    """A summary that is rejected rather than stored: the old view stays."""


class EmptySummary(SummaryError):  # noqa: N818
    """The model answered with nothing that can be seen."""


class ErrorSummary(SummaryError):  # noqa: N818
    """The model answered with the error object of a provider."""


class RefusedSummary(SummaryError):  # noqa: N818
    """The model declined to summarise."""


class TruncatedSummary(SummaryError):  # noqa: N818
    """The reply did not end with a reason that means "complete"."""


class OverlongSummary(SummaryError):  # noqa: N818
    """The reply is longer than its cap and than what it replaces."""
