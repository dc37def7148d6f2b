"""A client's body with fewer messages.

What stays is unchanged byte by byte. Nothing here reads the database.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any

from chatsite.contrib.endpoint.store.bodies import Body, SentPiece

from ..apis.openai_responses import REFERENCE, RESULTS, find_kind


def write_preamble(texts: Iterable[str]) -> str:
    """Return the site's messages as JSON, in a form that all APIs accept.

    What they quote never has the role of the system.
    """
    return ",".join(
        json.dumps({"role": "user", "content": text}, ensure_ascii=False)
        for text in texts
    )


def read_piece(body: Body, piece: SentPiece, list_name: str) -> Any:
    """Return a message of the body; a named item is replaced by its content."""
    value = json.loads(piece.text)
    is_named = isinstance(value, dict) and find_kind(value) == REFERENCE
    return body.value[list_name][piece.at] if is_named else value


def cut_body(
    body: Body,
    leading: Sequence[SentPiece],
    preamble: str,
    kept: Sequence[SentPiece],
    list_name: str,
) -> tuple[Body, bytes]:
    """Return the body with only these messages, and its bytes.

    The preamble is placed between the leading messages and the others.
    """
    places = [n for n, piece in enumerate(body.pieces) if piece.at is not None]
    first, last = places[0], places[-1]
    comma = body.between[first + 1] if last > first else ","
    commas = {body.pieces[n].at: body.between[n] for n in places[1:]}
    middle = [SentPiece(preamble, None, b"", is_rebuilt=True)] if preamble else []
    chosen = [*leading, *middle, *kept]
    pieces = [*body.pieces[:first], *chosen, *body.pieces[last + 1 :]]
    between = [
        *body.between[: first + 1],
        *(commas.get(piece.at, comma) for piece in chosen[1:]),
        *body.between[last + 1 :],
    ]
    texts = [between[0]]
    for piece, text in zip(pieces, between[1:], strict=True):
        texts += (piece.text, text)
    raw = "".join(texts).encode()
    messages = [
        *(read_piece(body, piece, list_name) for piece in leading),
        *json.loads(f"[{preamble}]"),
        *(read_piece(body, piece, list_name) for piece in kept),
    ]
    value = {**body.value, list_name: messages}
    return Body(value, pieces, between, hashlib.sha256(raw).hexdigest()), raw


def cut_results(piece: SentPiece) -> SentPiece | None:
    """Return a message or an item without results of calls that are not sent.

    Return None if nothing else is in it.
    """
    message = json.loads(piece.text)
    if message.get("role") in ("tool", "function") or message.get("type") in RESULTS:
        return None
    content = message.get("content")
    if message.get("role") != "user" or not isinstance(content, list):
        return piece
    rest = [
        each
        for each in content
        if not (isinstance(each, dict) and each.get("type") == "tool_result")
    ]
    if not rest:
        return None
    if rest == content:
        return piece
    value = {**message, "content": rest}
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return SentPiece(text, piece.at, hashlib.sha256(text.encode()).digest())
