"""Storage of the collected static files, and their addresses."""

import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.staticfiles.storage import StaticFilesStorage
from django.core.files.base import ContentFile, File
from whitenoise.storage import CompressedManifestStaticFilesStorage

IMPORTS = re.compile(rb'@import url\("([\w.-]+\.css)"\);')
# What stands in quotation marks is no comment; one without an end is all that follows.
COMMENTS = re.compile(rb"""("[^"\n]*"|'[^'\n]*')|/\*.*?(?:\*/\s*|\Z)""", re.DOTALL)
INDENT = re.compile(rb"\n\s+")
# Scripts that are collected as one file, for one request instead of ten: their names
# without "js/" and ".js", in the order in which they run.
JOINED = {
    "js/page.js": "first-use appearance menus times keys notice",
    "js/home-page.js": "sidebar list drafts",
    "js/split-page.js": (
        "sidebar list layout pieces live swap earlier token-buffer connection drafts"
    ),
    "js/sending.js": "outbox composer",
}


class CollectedFilesStorage(CompressedManifestStaticFilesStorage):
    """Hashed names once collectstatic has made them, plain names before.

    Stylesheets are collected without comments and indents, and with their imports
    inlined; scripts that pages load together are collected as one.
    """

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
        """The addresses by name; collected files do not change at run time."""
        return {}

    def list_addresses(self, name: str) -> list[str]:
        """Return the address of one of JOINED; its parts' before collectstatic."""
        if self.hashed_files and not settings.DEBUG:
            return [self.url(name)]
        return [self.url(part) for part in list_parts(name)]

    def post_process(self, paths: dict[str, Any], **options: Any) -> Iterator[Any]:
        if not options.get("dry_run"):
            self._join_scripts(paths)
        yield from super().post_process(paths, **options)

    def _join_scripts(self, paths: dict[str, Any]) -> None:
        for name in JOINED:
            parts = list_parts(name)
            # Other sources than the site's have none of them.
            if not paths.keys() >= {*parts}:
                continue
            scripts = [Path(self.path(part)).read_bytes() for part in parts]
            Path(self.path(name)).write_bytes(b"\n".join(scripts))
            paths[name] = (self, name)

    def _save(self, name: str, content: File) -> str:
        if name.endswith(".css"):
            css = COMMENTS.sub(rb"\1", b"".join(content.chunks()))
            content = ContentFile(INDENT.sub(b"\n", css))
        return super()._save(name, content)

    def post_process_with_compression(self, files: Iterator[Any]) -> Iterator[Any]:
        return super().post_process_with_compression(self._put_imports(files))

    def _put_imports(self, files: Iterator[Any]) -> Iterator[Any]:
        """Yield the files with hashed names, then inline imports of stylesheets.

        The names of the imports are known by then, and nothing is compressed yet.
        """
        yield from files
        for name in self.hashed_files.values():
            if name.endswith(".css"):
                path = Path(self.path(name))
                path.write_bytes(_read_whole(path))


def _read_whole(path: Path) -> bytes:
    """Return a stylesheet with the ones beside it that it imports inlined."""

    def read(found: re.Match[bytes]) -> bytes:
        return _read_whole(path.with_name(found[1].decode()))

    return IMPORTS.sub(read, path.read_bytes())


def list_parts(name: str) -> list[str]:
    """Return the scripts that are collected as this one."""
    return [f"js/{part}.js" for part in JOINED[name].split()]
