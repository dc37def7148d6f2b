"""The values of a policy: read, checked, and refused by name when wrong.

A trigger is an OR of ANDs of conditions such as ("tokens", 4000); a keep is one such
size.
"""

import reprlib
from collections.abc import Iterable

from .exceptions import PolicyError
from .patterns import MAX_PATTERN_CHARS, parse_pattern

ContextSize = tuple[str, int | float]
# Any one of the clauses fires the trigger; all conditions of a clause have to hold.
Clause = tuple[ContextSize, ...]
Trigger = tuple[Clause, ...]

KEEP_KINDS = ("tokens", "messages", "turns", "fraction")
TRIGGER_KINDS = (*KEEP_KINDS, "age", "idle")
MAX_SIZE = 1_000_000_000
MAX_PROMPT_CHARS = 8000
MAX_PATTERNS = 20


def parse_size(value: object, kinds: tuple[str, ...]) -> ContextSize:
    if not _is_pair(value):
        raise PolicyError(f"{show(value)}: expected a pair such as ('tokens', 4000)")
    kind, amount = value
    if kind not in kinds:
        raise PolicyError(f"{show(kind)}: expected one of {', '.join(kinds)}")
    if kind == "fraction":
        return kind, _parse_fraction(amount)
    if type(amount) is not int or not 1 <= amount <= MAX_SIZE:
        raise PolicyError(
            f"{show(amount)} {kind}: expected a whole number from 1 to {MAX_SIZE:,}"
        )
    return kind, amount


def _parse_fraction(amount: object) -> float:
    # bool is an int, and NaN fails every comparison.
    if type(amount) not in (int, float) or not 0 < amount <= 1:
        raise PolicyError(
            f"fraction {show(amount)}: expected a number above 0 and up to 1"
        )
    return float(amount)


def parse_trigger(value: object) -> Trigger:
    if value is None:
        return ()
    if isinstance(value, dict) or _is_pair(value):
        return (_parse_clause(value),)
    if not isinstance(value, (list, tuple)):
        raise PolicyError(f"{show(value)}: expected a pair, a dict, a list or None")
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
        raise PolicyError(f"{show(value)}: expected at least one condition")
    if len(dict(clause)) < len(clause):
        raise PolicyError(f"{show(value)}: expected each kind once")
    return clause


def parse_keep(value: object) -> ContextSize:
    return parse_size(value, KEEP_KINDS)


def parse_important(value: object) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or len(value) > MAX_PATTERNS:
        raise PolicyError(
            f"{show(value)}: expected a list of up to {MAX_PATTERNS} "
            "regular expressions"
        )
    for pattern in value:
        if not isinstance(pattern, str) or not 1 <= len(pattern) <= MAX_PATTERN_CHARS:
            raise PolicyError(
                f"{show(pattern)}: expected a regular expression of up to "
                f"{MAX_PATTERN_CHARS} characters"
            )
    return tuple(map(parse_pattern, value))


def parse_prompt(value: object) -> str:
    if not isinstance(value, str) or len(value) > MAX_PROMPT_CHARS:
        raise PolicyError(
            f"{show(value)}: expected a text of up to {MAX_PROMPT_CHARS:,} characters"
        )
    if "\0" in value or any("\ud800" <= char <= "\udfff" for char in value):
        raise PolicyError(f"{show(value)}: expected a text without NUL and surrogates")
    return value.strip()


def _is_pair(value: object) -> bool:
    return (
        isinstance(value, (list, tuple))
        and len(value) == 2
        and isinstance(value[0], str)
    )


def show(value: object) -> str:
    return reprlib.repr(value)
