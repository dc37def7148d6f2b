"""Whether one text is another one that a client has wrapped, cut or stamped."""

from typing import NamedTuple

from .canonical import encode_text

# The end of what a client puts before a text on lines of its own.
LINE_ENDS = ("\n", ">")
# Bytes that follow each other, and how many of a text are looked at from either end.
RUN, RUNS_FROM = 16, 2_048
# The same of instructions, which are long.
INSTRUCTIONS_FROM = 32_768


class Likeness(NamedTuple):
    """How two texts that are not the same are alike."""

    # One of them is a part of the other one.
    is_contained: bool = False
    # A part that begins and ends with a line of the other one.
    is_at_line: bool = False
    # So many bytes of UTF-8 are the same.
    size: int = 0


def compare_texts(one: str, other: str) -> Likeness | None:
    """None if they are not alike: less than half of the shorter one is the same, at
    its beginning and its end."""
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
    """How many characters at the beginning are the same, by halving."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one.startswith(other[low:middle], low):
            low = middle
        else:
            high = middle - 1
    return low


def differ_once(one: str, other: str) -> bool:
    """Return whether all that they have in common is before and after one part of each,
    such as the time. Two questions in one template differ in that and in themselves."""
    start = count_equal_start(one, other)
    one, other = one[start:], other[start:]
    end = count_equal_start(one[::-1], other[::-1])
    return not find_runs(one[: len(one) - end], other[: len(other) - end])


def find_runs(one: str, other: str) -> set[bytes]:
    """All pieces of RUN bytes that both have, in whatever they are wrapped."""
    return _list_runs(one) & _list_runs(other)


def share_little(one: str, other: str) -> bool:
    """Return whether two instructions are those of different agents: less than half of
    the shorter one is in the other, in one piece or in runs."""
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
