"""The format of log records: one line each, as text or as JSON.

No text of a user or a model is ever in one: of an exception only its class and place
are written, because its message can contain what was typed. With DEBUG all of it is.
"""

import json
import logging
import re
import traceback
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import unquote

from daphne.access import AccessLogGenerator

from .open_paths import hide_secrets

# The fields of the site's own messages: name=value.
FIELDS = re.compile(r"\b([a-z_]+)=([\w.:-]+)")
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
FRAMES = 12


def one_line(text: str) -> str:
    """Return the text as one line without secrets.

    Links that would open pages to the log's readers are hidden, and every character is
    escaped that could end or hide a line.
    """
    return CONTROL.sub(lambda found: ascii(found[0])[1:-1], hide_secrets(text))


def place_of(trace: TracebackType | None) -> list[str]:
    """Return the innermost calls, as file:line function."""
    frames = traceback.extract_tb(trace)[-FRAMES:]
    return [f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in frames]


class LineFormatter(logging.Formatter):
    def __init__(self, *, debug: bool = False) -> None:
        super().__init__("{asctime} {levelname} {name} {message}", style="{")
        self._debug = debug

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        return one_line(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:  # noqa: N802
        if self._debug:
            # Read late: this module is loaded with the settings, that one needs them.
            from .error_page import hide_secrets

            return hide_secrets(super().formatException(ei))
        kind, _, trace = ei
        return f"{kind.__name__} in {' < '.join(reversed(place_of(trace)))}"

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        # A text that was made by another formatter may be kept with the record.
        record.exc_text = None
        return text if self._debug else text.replace("\n", " | ")


class JsonFormatter(logging.Formatter):
    """A formatter that writes an object per line.

    It has time, level, logger, message, the ids named in the message, and of an
    exception its class and place.
    """

    def format(self, record: logging.LogRecord) -> str:
        message = hide_secrets(record.getMessage())
        value: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": message,
        }
        for name, found in FIELDS.findall(message):
            value.setdefault(name, int(found) if found.isdecimal() else found)
        if record.exc_info and record.exc_info[0]:
            value["exception"] = record.exc_info[0].__name__
            value["place"] = place_of(record.exc_info[2])
        return json.dumps(value)


class AccessLog(AccessLogGenerator):
    """Daphne's lines for requests and sockets, without query strings.

    Those hold the words that people search for.
    """

    def __call__(self, protocol: str, action: str, details: dict[str, Any]) -> None:
        if "path" in details:
            path = details["path"].partition("?")[0]
            # With letters of the secret escaped it opens the same page.
            plain = unquote(path)
            path = one_line(plain if hide_secrets(plain) != plain else path)
            details = {**details, "path": path}
        super().__call__(protocol, action, details)
