"""Lists of the admin as CSV: the rows as their list shows them, masked as it is.

Each conversation whose texts it has is in the access log before.
"""

import csv
import html
import io
import re
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from channels.db import database_sync_to_async
from django.contrib.admin.utils import label_for_field, lookup_field
from django.db.models import QuerySet
from django.http import HttpRequest, StreamingHttpResponse
from django.utils import timezone, translation
from django.utils.safestring import SafeString

from . import access_log

if TYPE_CHECKING:
    from .readonly import ShortListAdmin

MAX_ROWS = 10_000
AT_ONCE = 200
# What spreadsheets take for a formula, also in wide letters and behind blanks.
FORMULA = re.compile("[\\s\x00]*[=+\\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")
Names = Sequence[Any]
TAG = re.compile("<[^<>]*>")


def send_csv(
    listed: "ShortListAdmin", request: HttpRequest, rows: QuerySet
) -> StreamingHttpResponse:
    """Return the rows as a file; its name says if there were more rows than it has."""
    keys = list(rows.values_list("pk", flat=True)[: MAX_ROWS + 1])
    names = listed.get_list_display(request)
    name = f"{listed.opts.model_name}-{timezone.localdate():%Y-%m-%d}"
    if len(keys) > MAX_ROWS:
        name += f"-first-{MAX_ROWS}"
    target = f"csv {listed.opts.model_name}"
    access_log.record_access(request, access_log.StaffAction.CSV, None, target)
    lines = _write_rows(listed, request, keys[:MAX_ROWS], names)
    answer = StreamingHttpResponse(lines, content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    return answer


async def _write_rows(
    listed: "ShortListAdmin", request: HttpRequest, keys: Sequence[Any], names: Names
) -> AsyncIterator[str]:
    language = translation.get_language()
    labels = [str(label_for_field(name, listed.model, listed)) for name in names]
    # The mark by which spreadsheets know UTF-8.
    yield "\ufeff" + write_line(labels)
    for start in range(0, len(keys), AT_ONCE):
        some = keys[start : start + AT_ONCE]
        write = database_sync_to_async(_write_batch)
        yield await write(listed, request, some, names, language)


def _write_batch(
    listed: "ShortListAdmin",
    request: HttpRequest,
    keys: Sequence[Any],
    names: Names,
    language: str | None,
) -> str:
    """Return the lines of these rows in the keys' order; skip rows that are gone."""
    rows = listed.get_queryset(request).order_by().filter(pk__in=keys)
    if listed.list_select_related:
        rows = rows.select_related(*listed.list_select_related)
    found = {row.pk: row for row in rows}
    shown = listed.complete_rows([found[key] for key in keys if key in found])
    listed.record_texts(request, shown, access_log.StaffAction.CSV)
    with translation.override(language):
        return "".join(
            write_line([_show_cell(name, row, listed) for name in names])
            for row in shown
        )


def _show_cell(name: Any, row: Any, listed: "ShortListAdmin") -> object:
    field, _attribute, value = lookup_field(name, row, listed)
    if value is None:
        return ""
    if isinstance(value, datetime):
        return timezone.localtime(value).isoformat(sep=" ", timespec="seconds")
    if isinstance(value, SafeString):
        # Whatever was said is escaped in it.
        return html.unescape(TAG.sub("", value))
    if choices := getattr(field, "flatchoices", None):
        return str(dict(choices).get(value, value))
    return value if isinstance(value, bool | int | float) else str(value)


def write_line(cells: Sequence[object]) -> str:
    """Return a line of a file in which no text is a formula."""
    line = io.StringIO()
    csv.writer(line).writerow(map(_neutralise, cells))
    return line.getvalue()


def _neutralise(cell: object) -> object:
    """Return a text that no spreadsheet takes for a formula; numbers as they are."""
    is_formula = isinstance(cell, str) and FORMULA.match(cell)
    return f"'{cell}" if is_formula else cell
