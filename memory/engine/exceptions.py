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

# In what providers say when they refuse a request for its length.
CONTEXT_LENGTH_MARKS = (
    "context_length_exceeded",
    "maximum context length",
    "context window",
    "context size",
    "context limit exceeded",
    "contextwindowexceeded",
    "prompt is too long",
    "input tokens exceed",
)


def says_too_long(said: str) -> bool:
    """Return True if a provider's words refuse a request for its length.

    Servers agree on words more than on codes (vLLM, llama.cpp, LiteLLM).
    """
    return any(mark in said.lower() for mark in CONTEXT_LENGTH_MARKS)


def is_too_long(status: int | None, said: str) -> bool:
    """Return True if an answer with this status refuses a request for its length."""
    return status == 413 or (status in (400, 422) and says_too_long(said))


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
