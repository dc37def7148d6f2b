"""Files in results of tools as people get them: on the card, and to keep."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Q

from chatsite.features.tools.models import ADDRESS, ResultFile

# Kinds that are shown or played on the page, with how such bytes begin: no other is,
# since a picture could hold scripts.
PICTURES = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
}
SOUNDS = {
    "audio/mpeg": (b"ID3", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2"),
    "audio/wav": (b"RIFF",),
    "audio/x-wav": (b"RIFF",),
    "audio/ogg": (b"OggS",),
    "audio/flac": (b"fLaC",),
    "audio/webm": (b"\x1aE\xdf\xa3",),
}
OTHER = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class FileCard:
    """A file on the card of its call."""

    place: int
    name: str
    title: str
    kind: str
    size: int | None
    # Only where it is one of the web.
    address: str
    text_of_address: str
    # By which replies cite it, if it is a page of the web.
    source: int | None
    is_kept: bool

    @property
    def is_picture(self) -> bool:
        return self.is_kept and self.kind in PICTURES

    @property
    def is_sound(self) -> bool:
        return self.is_kept and self.kind in SOUNDS


def read(messages: Iterable[int]) -> dict[int, tuple[FileCard, ...]]:
    """Return the files of these messages, by key, without their bytes."""
    rows = ResultFile.objects.filter(message__in=messages).order_by("place")
    found = defaultdict(list)
    columns = ("place", "name", "title", "kind", "size", "source", "url")
    for key, *values, source, url, is_kept in rows.annotate(
        is_kept=Q(data__isnull=False)
    ).values_list("message", *columns, "is_kept"):
        address = url if ADDRESS.match(url) else ""
        found[key].append(FileCard(*values, address, url, source, is_kept))
    return {key: tuple(files) for key, files in found.items()}


def kind_of(file: ResultFile) -> str:
    """Return the media type for browsers.

    A picture or a sound has its own type only if its bytes begin so.
    """
    starts = (PICTURES | SOUNDS).get(file.kind)
    is_so = starts and bytes(file.data).startswith(starts)
    return file.kind if is_so else OTHER
