"""Every error the engine raises on purpose.

EngineError
├── PolicyError        a policy with a wrong value; also a ValueError
└── SummaryError       the summariser's reply can not become memory
    ├── EmptySummary
    ├── RefusedSummary
    ├── TruncatedSummary
    └── OverlongSummary
"""


class EngineError(Exception):
    """Base of the errors below; anything else that escapes is a bug."""


class PolicyError(EngineError, ValueError):
    """Names the wrong value and what was expected. Raised at construction."""


class SummaryError(EngineError):
    """Raised instead of storing a doubtful summary: the old view stays."""


class EmptySummary(SummaryError):  # noqa: N818
    """The model answered with nothing but white space."""


class RefusedSummary(SummaryError):  # noqa: N818
    """The model declined to summarise."""


class TruncatedSummary(SummaryError):  # noqa: N818
    """The provider cut the reply off (length limit or content filter)."""


class OverlongSummary(SummaryError):  # noqa: N818
    """The reply is longer than its cap and than what it stands for."""
