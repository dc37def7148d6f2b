"""Regular expressions by which users mark messages as important.

Python's `re` can neither be interrupted nor given a time limit, so a pattern is
accepted only if its worst case for one stretch of text is small.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from time import thread_time

from .exceptions import PolicyError
from .wording import TranslatableText
from .wording import gettext_noop as _

MAX_PATTERN_CHARS = 200
# Texts are searched in overlapping stretches; a match is no longer than one of them.
STRETCH, STEP = 200, 100
# A longer message is a document, not a remark to be kept word for word.
MAX_TEXT_CHARS = 4000
MAX_WORK = 1000
# For all messages of one compaction.
SEARCH_SECONDS = 1.0

TOKEN = re.compile(
    r"(?P<escape>\\.)|(?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])|(?P<open>\((?:\?:)?)"
    r"|(?P<close>\))|(?P<either>\|)|(?P<repeat>[*+?]|\{\d*,?\d*\})|(?P<other>.)",
    re.DOTALL,
)
REFUSED_ESCAPE = re.compile(r"\\[1-9]")


def parse_pattern(text: str) -> str:
    """Return the pattern as it is; raise PolicyError for one that is not accepted."""
    try:
        _compile_pattern(text)
        _check_work(text.removeprefix("(?i)"))
        return text
    except PolicyError as error:
        why = error.wording
    except (re.error, OverflowError) as error:
        place = (getattr(error, "pos", None) or 0) + 1
        why = TranslatableText(
            _("it makes no sense at character %(place)s"), {"place": place}
        )
    template = _("%(pattern)s: expected a simple regular expression (%(why)s)")
    raise PolicyError(template, pattern=repr(text), why=why)


def _check_work(pattern: str) -> None:
    if (work := _estimate_work(pattern)) > MAX_WORK:
        template = _(
            "it may take %(work)s steps at a place, more than %(limit)s; two of * or + "
            "are too many"
        )
        raise PolicyError(template, work=f"{work:,}", limit=f"{MAX_WORK:,}")


class PatternSearch:
    """A search for patterns in one text after another, with a common time limit.

    One stretch of text costs little, but twenty patterns over a long conversation take
    minutes. The time is that of this thread, so the result does not depend on other
    load of the machine.
    """

    def __init__(
        self, patterns: Iterable[str], seconds: float = SEARCH_SECONDS
    ) -> None:
        self.patterns = [_compile_pattern(pattern) for pattern in patterns]
        self.seconds = seconds

    def has_match(self, text: str) -> bool | None:
        """Return whether a pattern is in the text, or None if no time was left."""
        if len(text) > MAX_TEXT_CHARS:
            return False
        started = thread_time()
        end = started + self.seconds
        try:
            for pattern in self.patterns:
                for start in range(0, max(len(text) - STRETCH + STEP, 1), STEP):
                    if thread_time() >= end:
                        return None
                    if pattern.search(text, start, start + STRETCH):
                        return True
            return False
        finally:
            self.seconds -= thread_time() - started


@lru_cache(maxsize=256)
def _compile_pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _estimate_work(pattern: str) -> int:
    """Return an upper bound of the ways to match at one place.

    That is the product of all choices.
    """
    work = 1
    branches: list[int] = []
    before = ""
    for match in TOKEN.finditer(pattern):
        kind, token = str(match.lastgroup), match.group()
        if kind == "open":
            branches.append(1)
        elif kind == "either" and branches:
            branches[-1] += 1
        elif kind == "close" and branches:
            work *= branches.pop()
        elif kind == "repeat":
            work *= _count_repeats(token, before)
        elif kind == "escape" and REFUSED_ESCAPE.match(token):
            raise PolicyError(_("no reference to a group"))
        before = kind
    return work


def _count_repeats(mark: str, before: str) -> int:
    """Return the number of lengths that the repetition can have."""
    # After an opening bracket: a look-around, a name or a flag, all of them too much.
    if before == "open":
        raise PolicyError(_("of groups only (...) and (?:...), and (?i) in front"))
    if mark == "?":
        return 2
    # Repeated groups are where the time grows exponentially.
    if before == "close":
        raise PolicyError(_("no group may be repeated"))
    first, comma, last = mark.strip("{}").partition(",")
    if mark in ("*", "+") or (comma and not last):
        return STRETCH
    if not comma:
        return 1
    return int(last) - int(first or 0) + 1
