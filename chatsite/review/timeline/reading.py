"""Rows as a reviewer may read them, and the numbers in an address."""

from collections.abc import Iterable
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest

from .. import redaction
from ..rights import Rights

MAX = 2**31 - 1


def readable(rows: QuerySet, rights: Rights, columns: Iterable[str]) -> QuerySet:
    """The rows; for who may not read them without these columns."""
    return rows if rights.content else redaction.mark(rows, rights, columns)


def text_of(row: Any, rights: Rights) -> str:
    """The text, or in its place how long it is."""
    return row.text if rights.content else redaction.read(row, "text")


def number(request: HttpRequest, name: str) -> int | None:
    """A number from the address; None for what is none."""
    text = request.GET.get(name, "")
    is_number = text.isascii() and text.isdecimal() and len(text) <= 10
    return int(text) if is_number and 1 <= int(text) <= MAX else None
