"""Splitting a body into pieces, and joining them again byte by byte.

A piece that was sent before is not stored again. Nothing here reads the database.
"""

import hashlib
import json
import re
from collections.abc import Iterable
from itertools import groupby
from typing import Any, NamedTuple

from chatsite.strict_json import RepeatedNameError, make_object

from ..apis.named_objects import has_other_case

SPACE = re.compile(r"[ \t\n\r]*")
NEXT = re.compile(r", ?\{")
WHITE = frozenset(" \t\n\r")
# A longer value of the body, such as tools, becomes a piece of its own.
PIECE_CHARS = 512
# Fields that are checked or stored.
READ = frozenset(
    {
        *("messages", "system", "model", "stream", "tools", "container"),
        *("input", "instructions", "previous_response_id", "conversation"),
        *("prompt", "background", "thread"),
    }
)

REPEATED = (
    "The body has {!r} twice in one object, and programs differ in which one counts. "
    "Send it once."
)
OTHER_CASE = "The body has {!r}, which some programs take for {!r}. Write it so."

# As `raw_decode`, which only calls it; raises StopIteration where there is no value.
_decode = json.JSONDecoder(object_pairs_hook=make_object).scan_once


class BodyError(ValueError):
    """Raised for a body that is no request; the text says what is wrong."""


class SentPiece(NamedTuple):
    """A part of a body, as it was sent.

    `at` is the index of its message. A piece with `is_rebuilt` is not stored, as it can
    be made again.
    """

    text: str
    at: int | None
    digest: bytes
    is_rebuilt: bool = False


class Body(NamedTuple):
    """A parsed body.

    `between` holds the texts before, between and after the pieces.
    """

    value: dict[str, Any]
    pieces: list[SentPiece]
    between: list[str]
    sha256: str


class BodyPrefix(NamedTuple):
    """The first `end` bytes of a body, up to the end of a message.

    They were parsed before. What follows is added to the lists.
    """

    value: dict[str, Any]
    pieces: list[SentPiece]
    between: list[str]
    end: int
    # SHA-256 of these bytes.
    sha256: Any


def read_body(
    raw: bytes, list_name: str = "messages", begun: BodyPrefix | None = None
) -> Body:
    """Parse a body and split it into pieces.

    `list_name` is the field that holds the messages, `begun` the known beginning of the
    body. Raise BodyError where it is no JSON object.
    """
    begun = begun or BodyPrefix({}, [], [], 0, hashlib.sha256())
    value, pieces, between, start, sha256 = begun
    rest = memoryview(raw)[start:]
    try:
        text = str(rest, "utf-8")
        spans = _read_rest(text, value, list_name, is_begun=start > 0)
    except UnicodeDecodeError:
        raise BodyError("The body is not UTF-8.") from None
    except RecursionError:
        raise BodyError("The body is nested too deeply.") from None
    except RepeatedNameError as error:
        raise BodyError(REPEATED.format(str(error)[:100])) from None
    except (ValueError, IndexError, StopIteration) as error:
        if isinstance(error, BodyError):
            raise
        raise BodyError("The body is not valid JSON.") from None
    end = 0
    for start, stop, at in spans:
        between.append(text[end:start])
        piece = text[start:stop]
        pieces.append(SentPiece(piece, at, hashlib.sha256(piece.encode()).digest()))
        end = stop
    between.append(text[end:])
    sha256.update(rest)
    return Body(value, pieces, between, sha256.hexdigest())


def _skip(text: str, at: int) -> int:
    """Return the position after white space.

    Mostly there is none, or one character.
    """
    for _ in range(2):
        if text[at : at + 1] not in WHITE:
            return at
        at += 1
    return SPACE.match(text, at).end()


Span = tuple[int, int, int | None]


def _read_rest(
    text: str, value: dict[str, Any], list_name: str, *, is_begun: bool
) -> list[Span]:
    """Parse the rest of the body into `value` and return the spans of its pieces.

    With `is_begun`, the text begins after a message.
    """
    spans: list[Span] = []
    if is_begun:
        at = _skip_comma(text, 0, "]")
        end = _read_items(text, at, value[list_name], spans)
        at = _skip_comma(text, end, "}")
    else:
        at = _skip(text, 0)
        if text[at : at + 1] != "{":
            raise BodyError("The body must be a JSON object.")
        at = _skip(text, at + 1)
    _read_fields(text, at, value, spans, list_name)
    return spans


def _read_fields(
    text: str, at: int, value: dict[str, Any], spans: list[Span], list_name: str
) -> None:
    """Parse the fields up to the end of the object, which must end the text."""
    while text[at] != "}":
        name, at = _decode(text, at)
        at = _skip(text, at)
        if not isinstance(name, str) or text[at] != ":":
            raise ValueError("no name")
        if name in value:
            raise RepeatedNameError(name)
        if has_other_case(name, READ):
            raise BodyError(OTHER_CASE.format(name, name.casefold()))
        at = _skip(text, at + 1)
        if name == list_name and text[at] == "[":
            value[name] = []
            end = _read_items(text, _skip(text, at + 1), value[name], spans)
        else:
            value[name], end = _decode(text, at)
            # A text instead of a list is one message.
            is_message = name == list_name and isinstance(value[name], str)
            if is_message or end - at > PIECE_CHARS:
                spans.append((at, end, 0 if is_message else None))
        at = _skip_comma(text, end, "}")
    if _skip(text, at + 1) != len(text):
        raise ValueError("more follows")


def _read_items(text: str, at: int, values: list[Any], spans: list[Span]) -> int:
    """Parse the items of a list and return the position after it."""
    while text[at] != "]":
        value, end = _decode(text, at)
        spans.append((at, end, len(values)))
        values.append(value)
        # Usually the next message begins here.
        comma = NEXT.match(text, end)
        at = comma.end() - 1 if comma else _skip_comma(text, end, "]")
    return at + 1


def _skip_comma(text: str, at: int, close: str) -> int:
    """Return the position of the next value, or of the closing bracket."""
    at = _skip(text, at)
    if text[at] == ",":
        at = _skip(text, at + 1)
        if text[at] != close:
            return at
    elif text[at] == close:
        return at
    raise ValueError("no comma")


# Repeated texts are stored once with their number, such as the commas of a list.
Runs = list[list[Any]]


def pack_runs(texts: Iterable[str]) -> Runs:
    return [[text, len(list(same))] for text, same in groupby(texts)]


def join_body(between: Runs, pieces: Iterable[str]) -> bytes:
    """Return the bytes of the body that these pieces form."""
    parts = (text for text, count in between for _ in range(count))
    joined = [next(parts, "")]
    for piece, text in zip(pieces, parts, strict=False):
        joined += (piece, text)
    return "".join(joined).encode()


class Hollow(NamedTuple):
    """A piece without the text that is stored elsewhere.

    `hole` is where the text was, and `is_ascii` how it was written.
    """

    text: str
    hole: int | None = None
    is_ascii: bool = False


# Shorter texts stay in their piece.
HOLLOW_CHARS = 40


def hollow_out(piece: str, text: str) -> Hollow:
    """Return the piece without this text, if it is written there as expected."""
    if len(text) >= HOLLOW_CHARS:
        for is_ascii in (False, True):
            written = json.dumps(text, ensure_ascii=is_ascii)
            at = piece.find(written)
            if at >= 0:
                return Hollow(piece[:at] + piece[at + len(written) :], at, is_ascii)
    return Hollow(piece)


def fill_in(hollow: Hollow, text: str) -> str:
    """Return the piece with its text."""
    if hollow.hole is None:
        return hollow.text
    written = json.dumps(text, ensure_ascii=hollow.is_ascii)
    return hollow.text[: hollow.hole] + written + hollow.text[hollow.hole :]
