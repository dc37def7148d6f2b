"""The conversations of an uploaded file, as plain JSON values."""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from math import isfinite
from typing import IO, Any

from django.conf import settings
from django.utils.translation import gettext as _

from chatsite import plugins
from chatsite.languages import find_sentence_space
from chatsite.strict_json import RepeatedNameError, make_object

from ..tables import exported_lists

MEGABYTE = 1024 * 1024
# No export is nested by a third of it, and what is taken can be exported again.
MAX_DEPTH = 60
MAX_VALUES = 3_000_000
# JSON written by a model or its provider, which no other column has.
AS_WRITTEN = {
    ("messages", "extras"),
    ("messages", "tool_calls", "args"),
    ("summaries", "structured"),
}
# One that isn't closed goes on to the end of the file, which is no JSON then.
STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")
STEPS = [(byte in b"[{") - (byte in b"]}") for byte in range(256)]


# By what sources begin with: who wrote the replies.
SITES = {"chatgpt": "ChatGPT", "claude": "Claude", "deepseek": "DeepSeek"}


# Of Claude's conversations, and of its memory.
CLAUDE = {"chat_messages", "conversations_memory"}


@dataclass(frozen=True, slots=True)
class ArchiveReader:
    """A reader of conversations of another site's archives, which returns a Draft.

    An app registers one as a source, by the word of the site.
    """

    read: Callable[[Any], Any]


class ImportFileError(Exception):
    """A file of which nothing was imported; the message says where it is wrong."""


class ImportItemError(Exception):
    """One conversation of a file that can't be imported."""


def read_items(texts: Iterable[bytes]) -> list[Any]:
    """Return the conversations of a file or of its parts. Raises ImportFileError."""
    items: list[Any] = []
    values = 0
    for data in texts:
        value, count = decode_json(data, values)
        values += count
        if isinstance(value, dict) and isinstance(value.get("conversations"), list):
            value = value["conversations"]
        items += value if isinstance(value, list) else [value]
    _check_items(items)
    return items


def read_whole(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the bytes of a file that is no archive, and keep no reference to them.

    Raises ImportFileError.
    """
    data = file.read(settings.IMPORT_MAX_MB * MEGABYTE + 1)
    check_size(len(data))
    yield data


def check_size(size: int) -> None:
    if size > settings.IMPORT_MAX_MB * MEGABYTE:
        words = _("The file is larger than %(limit)s MB.")
        raise ImportFileError(words % {"limit": settings.IMPORT_MAX_MB})


def _check_shape(data: bytes, before: int) -> int:
    """Refuse data that would take much more memory than its size, or is too deep.

    Return the number of its values, counted without the contents of strings; `before`:
    those of earlier parts.
    """
    bare = STRING.sub(b"", data)
    count = sum(map(bare.count, (b",", b"[", b"{")))
    if before + count > MAX_VALUES:
        raise too_much()
    if measure_depth(bare) > MAX_DEPTH:
        words = _("The file is nested too deeply: more than %(limit)s levels.")
        raise ImportFileError(words % {"limit": MAX_DEPTH})
    return count


def measure_depth(bare: bytes) -> int:
    """Return the nesting depth of JSON without its strings."""
    marks = bare.translate(None, NO_BRACKETS)
    return max(accumulate(map(STEPS.__getitem__, marks)), default=0)


def too_much() -> ImportFileError:
    words = _(
        "The file has more values than one import may have. Nothing was stored: "
        "split it and import the parts."
    )
    return ImportFileError(words)


def decode_json(data: bytes, before: int = 0) -> tuple[Any, int]:
    """Return the value, and about how many values are in it.

    `before`: those of earlier parts. Raises ImportFileError.
    """
    count = _check_shape(data, before)
    try:
        text = data.decode("utf-8-sig")
        value = json.loads(
            text, parse_constant=_refuse_constant, object_pairs_hook=make_object
        )
        return value, count
    except UnicodeDecodeError as error:
        words = _("The file is not text in UTF-8: see byte %(byte)s.")
        raise ImportFileError(words % {"byte": f"{error.start:,}"}) from None
    except json.JSONDecodeError as error:
        raise ImportFileError(
            _("The file is not valid JSON: see line %(line)s, column %(column)s.")
            % {"line": error.lineno, "column": error.colno}
        ) from None
    except RepeatedNameError as error:
        words = _(
            "The file has %(name)s twice in one object, so one of the two values "
            "would be lost. Nothing was stored."
        )
        raise ImportFileError(words % {"name": repr(str(error)[:100])}) from None
    except ValueError:
        words = _("The file is not valid JSON: it has an invalid number.")
        raise ImportFileError(words) from None


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def _check_items(items: list[Any]) -> None:
    if not items:
        raise ImportFileError(_("There is no conversation in this file."))
    if not any(find_format(item) for item in items):
        words = _(
            "This isn't a Windowpane, ChatGPT, DeepSeek or Claude export. Choose "
            "conversations.json, or the .zip that contains it."
        )
        raise ImportFileError(words)
    if len(items) > settings.IMPORT_MAX_CONVERSATIONS:
        raise ImportFileError(
            _("The file has %(count)s conversations; the limit is %(limit)s.")
            % {"count": len(items), "limit": settings.IMPORT_MAX_CONVERSATIONS}
        )


def read_foreign(form: str, item: Any) -> Any:
    """Return the Draft of a conversation of another chat. Raises ImportItemError."""
    if reader := plugins.sources[ArchiveReader].get(form):
        return reader.read(item)
    words = _("it comes from %(site)s, and this site does not import archives of it.")
    raise ImportItemError(words % {"site": SITES[form]})


def find_format(item: Any) -> str:
    """ "windowpane", "chatgpt", "claude", "deepseek", or "" for something else."""
    if not isinstance(item, dict):
        return ""
    if "format" in item and "conversation" in item:
        return "windowpane"
    if "mapping" in item:
        return "deepseek" if "inserted_at" in item else "chatgpt"
    if isinstance(item.get("memories"), list):
        return "chatgpt"
    return "claude" if CLAUDE & item.keys() else ""


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
            waiting += [(part, (*path, n)) for n, part in enumerate(value)]
        elif not (_is_storable(value) or _is_number_in_json(path, value)):
            why = _("it has characters or a number that can't be stored")
            raise ImportItemError(explain_fault(path, why))


def _is_number_in_json(path: tuple[Any, ...], value: Any) -> bool:
    """Return whether it is a number in AS_WRITTEN, which can have any size."""
    is_number = isinstance(value, int) or isinstance(value, float) and isfinite(value)
    names = path[::2]
    return is_number and any(names[: len(each)] == each for each in AS_WRITTEN)


def _is_storable(value: Any) -> bool:
    if isinstance(value, str):
        return "\0" not in value and not any("\ud800" <= c <= "\udfff" for c in value)
    if isinstance(value, float):
        return abs(value) < 1e300
    return not isinstance(value, int) or abs(value) < 2**63


def explain_fault(path: tuple[Any, ...], why: str) -> str:
    """Return the sentences on a value of this site's own form that can't be read.

    `path`: from the conversation to the value.
    """
    titles = {
        "messages": _("messages"),
        "summaries": _("summaries"),
        "model_calls": _("requests to models"),
        **{each.name: each.title for each in exported_lists()},
    }
    where = {"why": why, "list": titles.get(path[0] if path else "")}
    if where["list"] and len(path) > 1 and isinstance(path[1], int):
        where["number"] = path[1] + 1
        fault = _("entry %(number)s of its %(list)s can't be read: %(why)s.")
    elif path[:1] == ("conversation",):
        fault = _("its settings can't be read: %(why)s.")
    else:
        fault = _("a part of it can't be read: %(why)s.")
    todo = _("Unless you have changed the file, export the conversation again.")
    return find_sentence_space().join([fault % where, todo])
