"""The archives of ChatGPT and Claude: their files with conversations, and their images.

Nothing of an archive is ever written to a disk.
"""

import re
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import PurePosixPath
from typing import IO, Any

from django.conf import settings
from django.utils.translation import gettext as _

from memory.engine.file_names import find_file_kind

from .reading import MEGABYTE, ImportFileError, decode_json

ZIP_MARK = b"PK\x03\x04"
MAX_ENTRIES = 10_000
# All files of an archive together, as many times as large as a file may be.
MAX_UNPACKED = 10
# Other compressions have no bound in Python: 430 bytes become 400 MB at once.
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# One file, or newer ones in numbered parts.
MEMBER = "conversations.json"
# Claude's memory of the user, in one file or one of each account.
MEMORIES = re.compile(r"memories(?:/[\w-]+)?\.json")
PARTS = re.compile(r"conversations(?:-\d+)?\.json")
# What files were called by those who uploaded them, where an archive has them as .dat.
NAMES = "conversation_asset_file_names.json"
MAX_NAMES_MB = 5
# The beginning of the names of files that a message can name.
ASSET = re.compile(r"(file[-_][A-Za-z0-9]+)(?:[-.]|$)")
IMAGES = ("png", "jpg", "jpeg", "jfif", "webp", "gif", "heic", "heif")
# Files that a Mac adds when it packs a folder.
JUNK = re.compile(r"(?:^|/)(?:__MACOSX/|\.DS_Store$|\._)")


def is_image_name(name: str) -> bool:
    return find_file_kind(name) in IMAGES


def is_archive(file: IO[bytes]) -> bool:
    mark = file.read(len(ZIP_MARK))
    file.seek(0)
    return mark == ZIP_MARK


class Archive:
    """An archive whose directory is in order.

    Raises ImportFileError if the archive, or later its conversations, can't be read.
    """

    def __init__(self, file: IO[bytes]) -> None:
        with _explain_damage():
            self._zip = zipfile.ZipFile(file)
        found = [each for each in self._zip.infolist() if not each.is_dir()]
        _check_entries(found)
        entries = [each for each in found if not JUNK.search(path_of(each))]
        self._texts = _find_texts(entries)
        _check_sizes(self._texts, found)
        self._names = self._read_names(entries)
        self._assets: dict[str, zipfile.ZipInfo] = {}
        for entry in entries:
            if asset := ASSET.match(base_of(entry)):
                self._assets.setdefault(asset[1], entry)
        self._others = {
            entry
            for entry in {*entries}.difference(self._texts)
            if base_of(entry) != NAMES
            and not is_image_name(self._names.get(base_of(entry), base_of(entry)))
        }

    @property
    def others(self) -> int:
        """The number of its files that are neither conversations nor images."""
        return len(self._others)

    def read_texts(self) -> Iterator[bytes]:
        """Yield the files with its conversations, within the limit of one file."""
        for entry in self._texts:
            with _explain_damage():
                data = self._read(entry)
            yield data

    def name_asset(self, asset_id: str) -> str:
        """Return the original name of this file, "" if it is missing or has none."""
        entry = self._assets.get(asset_id)
        if entry is None:
            return ""
        name = base_of(entry)
        rest = name.removeprefix(asset_id)
        return self._names.get(name) or (rest[1:] if rest.startswith("-") else "")

    def read_asset(self, asset_id: str) -> bytes | None:
        """Return the bytes of an existing file, None if it is damaged."""
        with suppress(ImportFileError), _explain_damage():
            return self._read(self._assets[asset_id])
        return None

    def find_asset(self, asset_id: str) -> int | None:
        """Return the declared size of this file, None if it is missing."""
        entry = self._assets.get(asset_id)
        return entry.file_size if entry else None

    def note_image(self, asset_id: str) -> None:
        """Count this file as an image, whatever its name is."""
        self._others.discard(self._assets[asset_id])

    def _read(self, entry: zipfile.ZipInfo) -> bytes:
        """All of it, and never more than the archive says that it has."""
        if entry.compress_type not in METHODS:
            raise zipfile.BadZipFile
        with self._zip.open(entry) as member:
            data = member.read(entry.file_size + 1)
        if len(data) != entry.file_size:
            raise zipfile.BadZipFile
        return data

    def _read_names(self, entries: Sequence[zipfile.ZipInfo]) -> dict[str, str]:
        """Return the original names of files.

        Errors are ignored: without this list the images have other names.
        """
        value: Any = None
        for entry in entries:
            if base_of(entry) == NAMES and entry.file_size <= MAX_NAMES_MB * MEGABYTE:
                with suppress(ImportFileError), _explain_damage():
                    value, _count = decode_json(self._read(entry))
        pairs = value.items() if isinstance(value, dict) else ()
        return {file: PurePosixPath(n).name for file, n in pairs if isinstance(n, str)}


def path_of(entry: zipfile.ZipInfo) -> str:
    return entry.filename.replace("\\", "/")


def base_of(entry: zipfile.ZipInfo) -> str:
    return PurePosixPath(path_of(entry)).name


def _find_texts(entries: Sequence[zipfile.ZipInfo]) -> list[zipfile.ZipInfo]:
    """Return the one file, or else all parts, of the highest folder that has some."""
    found = [each for each in entries if PARTS.fullmatch(base_of(each))]
    if not found:
        words = _("There is no %(name)s in this archive.")
        if any(find_file_kind(base_of(each)) == "zip" for each in entries):
            words = _(
                "There is no %(name)s in this archive, but other archives. Unpack "
                "it, and choose the one that has your conversations."
            )
        raise ImportFileError(words % {"name": MEMBER})
    found.sort(key=lambda each: (path_of(each).count("/"), path_of(each)))
    folder = PurePosixPath(path_of(found[0])).parent
    beside = [each for each in found if PurePosixPath(path_of(each)).parent == folder]
    whole = [each for each in beside if base_of(each) == MEMBER]
    start = "" if str(folder) == "." else f"{folder}/"
    memories = [e for e in entries if MEMORIES.fullmatch(path_of(e), len(start))]
    memories = [each for each in memories if path_of(each).startswith(start)]
    return (whole[:1] or beside) + memories


def _check_entries(entries: Sequence[zipfile.ZipInfo]) -> None:
    if len(entries) > MAX_ENTRIES:
        raise ImportFileError(
            _(
                "This archive has %(count)s files; the limit is %(limit)s. Unpack it "
                "and choose its conversations.json."
            )
            % {"count": f"{len(entries):,}", "limit": f"{MAX_ENTRIES:,}"}
        )
    for entry in entries:
        path = PurePosixPath(path_of(entry))
        if path.is_absolute() or ".." in path.parts:
            words = _(
                "A file in this archive has a name that leads out of its folder: "
                "%(name)s. ChatGPT and Claude make none like it; download it again."
            )
            raise ImportFileError(words % {"name": ascii(entry.filename)[1:-1][:60]})
        if entry.flag_bits & 1:
            words = _(
                "This archive is encrypted. Unpack it with its password and choose "
                "its conversations.json."
            )
            raise ImportFileError(words)


def _check_sizes(
    texts: Sequence[zipfile.ZipInfo], entries: Sequence[zipfile.ZipInfo]
) -> None:
    limit = settings.IMPORT_MAX_MB
    if sum(entry.file_size for entry in texts) > limit * MEGABYTE:
        words = _("The conversations in this archive have more than %(limit)s MB.")
        raise ImportFileError(words % {"limit": limit})
    limit *= MAX_UNPACKED
    if sum(entry.file_size for entry in entries) > limit * MEGABYTE:
        words = _(
            "This archive unpacks to more than %(limit)s MB. Unpack it and choose "
            "its conversations.json."
        )
        raise ImportFileError(words % {"limit": limit})


@contextmanager
def _explain_damage() -> Iterator[None]:
    try:
        yield
    except (ImportFileError, MemoryError):
        raise
    except Exception:  # noqa: BLE001
        # Torn archives make zipfile raise a dozen kinds of errors, few of its own.
        words = _(
            "This archive can’t be opened: it is damaged, encrypted or incomplete. "
            "Download it again, or unpack it and choose its conversations.json."
        )
        raise ImportFileError(words) from None
