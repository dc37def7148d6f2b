"""Input of a hostile browser: texts that break programs, for the fuzz tests.

A failure prints its seed; FUZZ_SEED repeats it and FUZZ_ROUNDS makes more of it.
"""

import os
import random
from urllib.parse import quote_from_bytes

SEED = int(os.environ.get("FUZZ_SEED", "20261122"))
ROUNDS = int(os.environ.get("FUZZ_ROUNDS", "1"))
UUID = "00000000-0000-4000-8000-000000000000"
DIGITS = "9" * 5_000
TEXTS = (
    *(
        "",
        " ",
        "\0",
        "a\0b",
        "a\0b" * 9,
        "\ud800",
        "a\udfff",
        "\x1b[2J",
        "\r\nSet-Cookie: a=b",
    ),
    *("foo", "foo.bar", "/\0", "/\ud800", "//evil.example", "https://evil.example/"),
    *("javascript:1", "/%00", "%", "%zz", "\\", "/c/", "/\n", "?", "#", "https://["),
    *("0", "-1", "1.5", "1e309", "NaN", "Infinity", "١٢", "²", DIGITS, str(2**31)),
    *(str(2**63), str(2**64), "-" + str(2**63), "1,2,3", "0x10", "1_000", "1.2.3"),
    *("null", "[]", "{}", "7", '"x"', "[1", "[" * 900 + "]" * 900, "[" * 9_000),
    *('{"keep": "\\u0000"}', '{"important": ["\\ud800"]}', '{"\\u0000": 1}'),
    *(f'{{"batch": {DIGITS}}}', '{"batch": NaN}', '{"keep": ["tokens", 1e400]}'),
    *('{"preset": []}', '{"preset": {}}', '{"trigger": {"a": {}}}', '{"keep": null}'),
    *("0001-01-01", "9999-12-31", "2026-02-30", "2026-11-22", "9999-12-31 23:59:59"),
    *(
        "True",
        "exact",
        UUID,
        UUID.upper(),
        UUID[:8],
        "x" * 300,
        "x" * 40_000,
        "梨" * 300,
    ),
    *("\u200b", "\u202e", "\ufeff", "\U0001f600", "{{ 7|add:7 }}", "%s", "' OR 1=1 --"),
    *("(a+)+$", "(", "[[", "*", "\u2028", "İ", "ſ", "\x7f", "\x85"),
)


def randomness(name: str) -> random.Random:
    print(f"FUZZ_SEED={SEED} FUZZ_ROUNDS={ROUNDS}")  # noqa: T201
    return random.Random(f"{SEED} {name}")


def form(fields: dict[str, str]) -> str:
    """Fields as a browser writes them, but with what no browser would send."""
    return "&".join(f"{quoted(name)}={quoted(text)}" for name, text in fields.items())


def quoted(text: str) -> str:
    return quote_from_bytes(text.encode("utf-8", "surrogatepass"), safe="")
