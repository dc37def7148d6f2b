"""From an uploaded file to the conversations in it, still as plain JSON values."""

import io
import json
import re
import zipfile
from itertools import accumulate
from pathlib import PurePosixPath
from typing import IO, Any

from django.conf import settings
from django.utils.translation import gettext as _

MEGABYTE = 1024 * 1024
ZIP_MARK = b"PK\x03\x04"
# No export is nested by a third of it, and what is taken can be exported again.
MAX_DEPTH = 60
MAX_VALUES = 3_000_000
# One that isn't closed goes on to the end of the file, which is no JSON then.
STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")
STEPS = [(byte in b"[{") - (byte in b"]}") for byte in range(256)]
# What the big providers put into the archives that they send to people.
MEMBER = "conversations.json"


class ImportFileError(Exception):
    """A file of which nothing was imported; the message says where it is wrong."""


class ImportItemError(Exception):
    """One conversation of a file that can't be imported."""


def read_file(file: IO[bytes]) -> list[Any]:
    """The conversations of the file. Raises ImportFileError."""
    limit = settings.IMPORT_MAX_MB * MEGABYTE
    data = file.read(limit + 1)
    if data.startswith(ZIP_MARK):
        data = _unzip_member(data, limit)
    check_size(len(data))
    _check_shape(data)
    value = _decode_json(data)
    items = _list_items(value)
    if not items:
        raise ImportFileError(_("There is no conversation in this file."))
    if len(items) > settings.IMPORT_MAX_CONVERSATIONS:
        raise ImportFileError(
            _("The file has %(count)s conversations; the limit is %(limit)s.")
            % {"count": len(items), "limit": settings.IMPORT_MAX_CONVERSATIONS}
        )
    return items


def check_size(size: int) -> None:
    if size > settings.IMPORT_MAX_MB * MEGABYTE:
        raise ImportFileError(
            _("The file is larger than %(limit)s MB.")
            % {"limit": settings.IMPORT_MAX_MB}
        )


def _unzip_member(data: bytes, limit: int) -> bytes:
    """The one file of an archive that matters; never more of it than the limit."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = [n for n in archive.namelist() if PurePosixPath(n).name == MEMBER]
            if not names:
                raise ImportFileError(
                    _("There is no %(name)s in this archive.") % {"name": MEMBER}
                )
            with archive.open(names[0]) as member:
                return member.read(limit + 1)
    except (ImportFileError, MemoryError):
        raise
    except Exception:  # noqa: BLE001
        # Torn archives make zipfile raise a dozen kinds of errors, few of its own.
        raise ImportFileError(
            _(
                "This archive can’t be opened: it is damaged, encrypted or incomplete. "
                "Download it again, or unpack it and choose its conversations.json."
            )
        ) from None


def _check_shape(data: bytes) -> None:
    """Refuse what would take much more memory than its size, or go too deep, before
    it is read. Counted without what is in strings."""
    bare = STRING.sub(b"", data)
    if sum(map(bare.count, (b",", b"[", b"{"))) > MAX_VALUES:
        raise too_much()
    if measure_depth(bare) > MAX_DEPTH:
        raise ImportFileError(
            _("The file is nested too deeply: more than %(limit)s levels.")
            % {"limit": MAX_DEPTH}
        )


def measure_depth(bare: bytes) -> int:
    """How deep JSON without its strings is nested."""
    marks = bare.translate(None, NO_BRACKETS)
    return max(accumulate(map(STEPS.__getitem__, marks)), default=0)


def too_much() -> ImportFileError:
    return ImportFileError(
        _(
            "The file has more values than one import may have. Nothing was stored: "
            "split it and import the parts."
        )
    )


def _decode_json(data: bytes) -> Any:
    try:
        return json.loads(data.decode("utf-8-sig"), parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise ImportFileError(
            _("The file is not text in UTF-8: see byte %(byte)s.")
            % {"byte": f"{error.start:,}"}
        ) from None
    except json.JSONDecodeError as error:
        raise ImportFileError(
            _("The file is not valid JSON: see line %(line)s, column %(column)s.")
            % {"line": error.lineno, "column": error.colno}
        ) from None
    except ValueError:
        raise ImportFileError(
            _("The file is not valid JSON: it has an invalid number.")
        ) from None


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def _list_items(value: Any) -> list[Any]:
    if isinstance(value, dict) and isinstance(value.get("conversations"), list):
        value = value["conversations"]
    items = value if isinstance(value, list) else [value]
    if not any(find_format(item) for item in items) and items:
        raise ImportFileError(
            _(
                "This isn't a Windowpane, ChatGPT or Claude export. Choose "
                "conversations.json, or the .zip that contains it."
            )
        )
    return items


def find_format(item: Any) -> str:
    """ "windowpane", "chatgpt", "claude", or "" for something else."""
    if not isinstance(item, dict):
        return ""
    if "format" in item and "conversation" in item:
        return "windowpane"
    if "mapping" in item:
        return "chatgpt"
    return "claude" if "chat_messages" in item else ""


def count_work(item: Any) -> int:
    """About how much of the work it is: its messages, and the requests to prove."""
    inner = item if isinstance(item, dict) else {}
    lists = (inner.get(n) for n in ("messages", "model_calls", "chat_messages"))
    parts = [*lists, inner.get("mapping")]
    return 1 + sum(len(part) for part in parts if isinstance(part, list | dict))


def check_values(item: Any) -> None:
    """Refuse what no database takes, wherever it hides. Raises ImportItemError."""
    waiting: list[tuple[Any, tuple[Any, ...]]] = [(item, ())]
    while waiting:
        value, path = waiting.pop()
        if isinstance(value, dict):
            waiting += [(key, (*path, "key")) for key in value]
            waiting += [(part, (*path, key)) for key, part in value.items()]
        elif isinstance(value, list):
            waiting += [(part, (*path, n)) for n, part in enumerate(value, 1)]
        elif not _is_storable(value):
            raise ImportItemError(
                _("%(place)s: it has characters or a number that can't be stored.")
                % {"place": name_place(path)}
            )


def _is_storable(value: Any) -> bool:
    if isinstance(value, str):
        return "\0" not in value and not any("\ud800" <= c <= "\udfff" for c in value)
    if isinstance(value, float):
        return abs(value) < 1e300
    return not isinstance(value, int) or abs(value) < 2**63


def name_place(path: tuple[Any, ...]) -> str:
    """Where in the file, in words: "messages, 12, text"."""
    return ", ".join(str(part)[:40] for part in path if part != "key") or _("the file")
