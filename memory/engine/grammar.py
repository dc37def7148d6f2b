"""The values of a policy: read, checked, and refused by name when wrong.

A trigger is an OR of ANDs of conditions such as ("tokens", 4000); a keep is one such
size.
"""

import reprlib
from collections.abc import Iterable

from .compose import SLOT
from .exceptions import PolicyError
from .patterns import MAX_PATTERN_CHARS, parse_pattern
from .wording import gettext_noop as _

ContextSize = tuple[str, int | float]
# Any one of the clauses fires the trigger; all conditions of a clause have to hold.
Clause = tuple[ContextSize, ...]
Trigger = tuple[Clause, ...]

KEEP_KINDS = ("tokens", "messages", "turns", "fraction")
TRIGGER_KINDS = (*KEEP_KINDS, "age", "idle")
# Beyond what any model or conversation has, and far from what a database can't hold.
MAX_SIZE = 10_000_000
# Seconds, of "age" and "idle": ten years.
MAX_SECONDS = 315_360_000
MAX_PROMPT_CHARS = 8000
MAX_PATTERNS = 20


def parse_size(value: object, kinds: tuple[str, ...]) -> ContextSize:
    if not _is_pair(value):
        raise _error(_("%(value)s: expected a pair such as ('tokens', 4000)"), value)
    kind, amount = value
    if kind not in kinds:
        expected = ", ".join(kinds)
        raise _error(_("%(value)s: expected one of %(kinds)s"), kind, kinds=expected)
    if kind == "fraction":
        return kind, _parse_fraction(amount)
    limit = MAX_SECONDS if kind in ("age", "idle") else MAX_SIZE
    if type(amount) is not int or not 1 <= amount <= limit:
        raise _error(
            _("%(value)s %(kind)s: expected a whole number from 1 to %(limit)s"),
            amount,
            kind=kind,
            limit=f"{limit:,}",
        )
    return kind, amount


def _parse_fraction(amount: object) -> float:
    # bool is an int, and NaN fails every comparison.
    if type(amount) not in (int, float) or not 0 < amount <= 1:
        raise _error(
            _("fraction %(value)s: expected a number above 0 and up to 1"), amount
        )
    return float(amount)


def parse_trigger(value: object) -> Trigger:
    if value is None:
        return ()
    if isinstance(value, dict) or _is_pair(value):
        return (_parse_clause(value),)
    if not isinstance(value, (list, tuple)):
        raise _error(_("%(value)s: expected a pair, a dict, a list or None"), value)
    return tuple(map(_parse_clause, value))


def _parse_clause(value: object) -> Clause:
    conditions: Iterable[object]
    if isinstance(value, dict):
        conditions = value.items()
    elif _is_pair(value):
        conditions = [value]
    else:
        # The parsed form itself: a tuple of pairs.
        conditions = value if isinstance(value, (list, tuple)) else ()
    clause = tuple(parse_size(condition, TRIGGER_KINDS) for condition in conditions)
    if not clause:
        raise _error(_("%(value)s: expected at least one condition"), value)
    if len(dict(clause)) < len(clause):
        raise _error(_("%(value)s: expected each kind once"), value)
    return clause


def parse_keep(value: object) -> ContextSize:
    return parse_size(value, KEEP_KINDS)


def parse_important(value: object) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or len(value) > MAX_PATTERNS:
        raise _error(
            _("%(value)s: expected a list of up to %(limit)s regular expressions"),
            value,
            limit=MAX_PATTERNS,
        )
    for pattern in value:
        if not isinstance(pattern, str) or not 1 <= len(pattern) <= MAX_PATTERN_CHARS:
            raise _error(
                _(
                    "%(value)s: expected a regular expression of up to %(limit)s "
                    "characters"
                ),
                pattern,
                limit=MAX_PATTERN_CHARS,
            )
    return tuple(map(parse_pattern, value))


def parse_prompt(value: object) -> str:
    if not isinstance(value, str) or len(value) > MAX_PROMPT_CHARS:
        raise _error(
            _("%(value)s: expected a text of up to %(limit)s characters"),
            value,
            limit=f"{MAX_PROMPT_CHARS:,}",
        )
    if "\0" in value or any("\ud800" <= char <= "\udfff" for char in value):
        raise _error(_("%(value)s: expected a text without NUL and surrogates"), value)
    return value.strip()


def parse_final_prompt(value: object) -> str:
    """A `{blocks}` of its own is left out when it is sent; one that would still be
    there after that is a mistake, or an attempt."""
    text = parse_prompt(value)
    if SLOT in text.replace(SLOT, ""):
        template = _("%(value)s: expected a text without %(slot)s inside of another")
        raise _error(template, value, slot=SLOT)
    return text


def _is_pair(value: object) -> bool:
    return (
        isinstance(value, (list, tuple))
        and len(value) == 2
        and isinstance(value[0], str)
    )


def _error(template: str, value: object, **values: object) -> PolicyError:
    return PolicyError(template, value=show(value), **values)


def show(value: object) -> str:
    return reprlib.repr(value)
