"""Reports of summaries that could not be made.

Each kind is warned of once; a function of the caller gets every error. A failure costs
no answer, so it would be noticed by the size of the bills alone.
"""

import logging
import re
import warnings
from collections.abc import Callable
from contextlib import suppress

from langchain_core.exceptions import ContextOverflowError

from ..engine.exceptions import is_too_long

logger = logging.getLogger(__name__)

OnFailure = Callable[[Exception], object]

MAX_CHARS = 300
# Keys in the text of a provider's error: by their usual prefixes, in a header or a URL,
# or by their length alone.
SECRET = re.compile(
    r"\bbearer\s+\S+|(?<=://)[^\s/@]+@|\b(?:sk|pk|rk|gsk|hf|xai)[-_]\S+|[\w-]{32,}",
    re.IGNORECASE,
)


class SummaryWarning(UserWarning):
    """A summary failed; the messages stay in the request as far as there is room."""


class Failures:
    """Reports of failures: one warning of each kind, as Deep Agents does for files.

    A log gets the name of the error only, because it is kept and its text may hold what
    no log should have. `on_failure` is called with each error, in the thread or event
    loop that made the summary.
    """

    def __init__(self, on_failure: OnFailure | None = None) -> None:
        self.on_failure = on_failure
        self._warned: set[tuple[str, str]] = set()

    def report_failure(self, error: Exception, thread: str = "") -> None:
        name = type(error).__name__
        logger.warning("compaction failed thread=%s error=%s", thread, name)
        self._warn(name, describe_failure(error))
        if self.on_failure is None:
            return
        try:
            self.on_failure(error)
        except Exception:
            logger.exception("on_failure failed")

    def _warn(self, name: str, reason: str) -> None:
        if (name, reason) in self._warned:
            return
        self._warned.add((name, reason))
        told = f"No summary was made: {name}" + (f": {reason}" if reason else "")
        # The answer is sent even where warnings are errors.
        with suppress(SummaryWarning):
            warnings.warn(told, SummaryWarning, stacklevel=2)


def is_overflow(error: Exception) -> bool:
    """Return True if the model's provider refused the request for its length.

    LangChain's own error is raised for the providers that it knows.
    """
    status = getattr(error, "status_code", None)
    return isinstance(error, ContextOverflowError) or is_too_long(status, str(error))


def describe_failure(error: Exception) -> str:
    """Return the text of an error in one line, without what looks like a key."""
    text = " ".join(str(error)[: 4 * MAX_CHARS].split())
    return SECRET.sub("[…]", text)[:MAX_CHARS]
