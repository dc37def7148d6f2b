"""Round numbers for axes, and numbers as people write them."""

from math import ceil, floor, log10

STEPS = (1, 2, 5, 10)


def find_ticks(top: float, steps: int = 4, *, whole: bool = True) -> list[float]:
    """Round numbers from 0 up to at least `top`, in about so many steps.

    `whole`: for things that are counted, which have no halves.
    """
    step = _round_up(max(top, 0) / steps or 1)
    if whole:
        step = max(1, ceil(step))
    # A hair of rounding must not add a step.
    count = max(1, ceil(top / step - 1e-9))
    return [round(step * n, 10) for n in range(count + 1)]


def _round_up(step: float) -> float:
    """The next number above with one digit that is 1, 2 or 5."""
    power = 10.0 ** floor(log10(step))
    return next(each for n in STEPS if (each := n * power) >= step * (1 - 1e-9))


def show(value: float | None, unit: str = "") -> str:
    """With separators of thousands and no digits that say nothing; "–" if unknown."""
    if value is None:
        return "–"
    digits = 0 if value == round(value) or abs(value) >= 100 else 2
    text = f"{value:,.{digits}f}"
    text = text.rstrip("0").rstrip(".") if digits else text
    return f"{text}\u00a0{unit}" if unit else text


def at(value: float) -> str:
    """A coordinate: never in the manner of a language, which SVG can not read."""
    return f"{value:.1f}".removesuffix(".0")


def spread(count: int, most: int) -> list[int]:
    """At most so many of the places 0..count-1, evenly apart."""
    step = max(1, ceil(count / most))
    return list(range(0, count, step))
