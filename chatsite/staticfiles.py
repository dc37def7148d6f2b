"""What of the static files is served, and where their addresses come from."""

import re
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path, PurePosixPath

from django.conf import settings
from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import StaticFilesStorage
from django.core.exceptions import SuspiciousFileOperation
from django.core.files.base import ContentFile, File
from whitenoise.storage import CompressedManifestStaticFilesStorage

IMPORTS = re.compile(rb'@import url\("([\w-]+\.css)"\);')
# What stands in quotation marks is no comment; one without an end is all that follows.
COMMENTS = re.compile(rb"""("[^"\n]*"|'[^'\n]*')|/\*.*?(?:\*/\s*|\Z)""", re.DOTALL)


class CollectedFilesStorage(CompressedManifestStaticFilesStorage):
    """Hashed names once collectstatic has made them, plain names before. Stylesheets
    are collected without their comments, and with what they import in its place."""

    def url(self, name: str, force: bool = False) -> str:
        if not self.hashed_files:
            return StaticFilesStorage.url(self, name)
        if settings.DEBUG or force:
            return super().url(name, force)
        # A page has up to eighty of them: a tenth of its time, if each is made again.
        if name not in self._addresses:
            self._addresses[name] = super().url(name)
        return self._addresses[name]

    @cached_property
    def _addresses(self) -> dict[str, str]:
        """By name. What was collected stays as it is while the process runs."""
        return {}

    def get_modified_time(self, name: str) -> datetime:
        """When it was collected; never for stylesheets: what one imports may have
        changed since, and collectstatic looks at that file alone."""
        if name.endswith(".css"):
            return datetime.min.replace(tzinfo=UTC)
        return super().get_modified_time(name)

    def _save(self, name: str, content: File) -> str:
        if name.endswith(".css"):
            content = ContentFile(_make_one(name, b"".join(content.chunks())))
        return super()._save(name, content)


def _make_one(name: str, css: bytes) -> bytes:
    """This stylesheet, the ones beside it that it imports put in, without comments."""

    def read(found: re.Match[bytes]) -> bytes:
        beside = str(PurePosixPath(name).with_name(found[1].decode()))
        path = finders.find(beside)
        if path is None:
            raise SuspiciousFileOperation(f"{name} imports {beside}, which is missing.")
        return _make_one(beside, Path(path).read_bytes())

    return IMPORTS.sub(read, COMMENTS.sub(rb"\1", css))
