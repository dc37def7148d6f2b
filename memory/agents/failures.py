"""What is said of a summary that could not be made: once, and to a function of the
caller each time.

A failure costs no answer, so it would be noticed by the size of the bills alone.
"""

import logging
import re
import warnings
from collections.abc import Callable
from contextlib import suppress

logger = logging.getLogger(__name__)

OnFailure = Callable[[Exception], object]

MAX_CHARS = 300
# Keys in the text of a provider's error: with their usual beginnings, in a header or an
# address, or by their length alone.
SECRET = re.compile(
    r"\bbearer\s+\S+|(?<=://)[^\s/@]+@|\b(?:sk|pk|rk|gsk|hf|xai)[-_]\S+|[\w-]{32,}",
    re.IGNORECASE,
)


class SummaryWarning(UserWarning):
    """No summary was made; the messages stay in the request as far as there is room."""


class Failures:
    """Warns of each kind of failure once, as Deep Agents does of its files.

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
        # Where warnings are errors, the answer goes out all the same.
        with suppress(SummaryWarning):
            warnings.warn(told, SummaryWarning, stacklevel=2)


def describe_failure(error: Exception) -> str:
    """The text of an error in one line, without what looks like a key."""
    text = " ".join(str(error)[: 4 * MAX_CHARS].split())
    return SECRET.sub("[…]", text)[:MAX_CHARS]
