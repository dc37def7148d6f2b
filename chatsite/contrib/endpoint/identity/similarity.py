"""Compare a text with another one that a client may have wrapped, cut or stamped."""

from typing import NamedTuple

from .canonical import encode_text

# The end of a text that a client puts before another one, on lines of its own.
LINE_ENDS = ("\n", ">")
# Bytes of a run, and bytes of a text that are compared from either end.
RUN, RUNS_FROM = 16, 2_048
# Likewise for instructions, which are long.
INSTRUCTIONS_FROM = 32_768


class Likeness(NamedTuple):
    """The likeness of two texts that are not equal."""

    # One text is a part of the other.
    is_contained: bool = False
    # That part is whole lines of the other text.
    is_at_line: bool = False
    # Equal bytes of UTF-8.
    size: int = 0


def compare_texts(one: str, other: str) -> Likeness | None:
    """Return the likeness of two texts, or None.

    None if less than half of the shorter text is equal at its beginning and its end.
    """
    shorter, longer = sorted((one.strip(), other.strip()), key=len)
    if not shorter:
        return None
    if shorter in longer:
        is_at_line = _stands_at_line(shorter, longer)
        return Likeness(True, is_at_line, len(encode_text(shorter)))
    head = count_equal_start(shorter, longer)
    tail = count_equal_start(shorter[::-1], longer[::-1])
    same = min(len(shorter), head + tail)
    return Likeness(size=same) if 2 * same >= len(shorter) else None


def _stands_at_line(shorter: str, longer: str) -> bool:
    if longer == shorter:
        return True
    if longer.startswith(shorter):
        return longer[len(shorter)] in "\n<"
    return longer.endswith(shorter) and longer[-len(shorter) - 1] in LINE_ENDS


def count_equal_start(one: str, other: str) -> int:
    """Return the number of equal characters at the beginning, by bisection."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one.startswith(other[low:middle], low):
            low = middle
        else:
            high = middle - 1
    return low


def differ_once(one: str, other: str) -> bool:
    """Return whether two texts differ in only one part, such as the time.

    Two different questions in one template differ in the time and in the question.
    """
    start = count_equal_start(one, other)
    one, other = one[start:], other[start:]
    end = count_equal_start(one[::-1], other[::-1])
    return not find_runs(one[: len(one) - end], other[: len(other) - end])


def find_runs(one: str, other: str) -> set[bytes]:
    """Return the pieces of RUN bytes that both texts have, wherever they are."""
    return _list_runs(one) & _list_runs(other)


def share_little(one: str, other: str) -> bool:
    """Return whether two instructions belong to different agents.

    They do if less than half of the shorter one is in the other, in one piece or in
    runs.
    """
    if compare_texts(one, other):
        return False
    runs, others = (_list_runs(text, INSTRUCTIONS_FROM) for text in (one, other))
    shared = len(runs & others)
    return not shared or 2 * shared < min(len(runs), len(others))


def _list_runs(text: str, most: int = RUNS_FROM) -> set[bytes]:
    raw = encode_text(text)
    if len(raw) > 2 * most:
        raw = raw[:most] + raw[-most:]
    return {raw[at : at + RUN] for at in range(len(raw) - RUN + 1)}
