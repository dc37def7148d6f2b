"""Bundles of static files, storage of the collected ones, and their addresses."""

import atexit
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import StaticFilesStorage
from django.core.files.base import ContentFile, File
from django.core.files.storage import FileSystemStorage
from whitenoise.storage import CompressedManifestStaticFilesStorage

from . import slots

# What stands in quotation marks is no comment; one without an end is all that follows.
COMMENTS = re.compile(rb"""("[^"\n]*"|'[^'\n]*')|/\*.*?(?:\*/\s*|\Z)""", re.DOTALL)
INDENT = re.compile(rb"\n\s+")
# The stylesheet and the script of each page, for two requests instead of forty: their
# parts in the order of the cascade and of execution. "@list-page": what apps add there.
# Relative addresses in stylesheets have to name the folder, as in "../inter/".
PAGE = "css/variables css/base css/conversation-list css/accessibility"
PANES = "css/layout css/composer css/transcript css/rail css/context css/reading"
SCRIPTS = (
    "django_htmx/htmx-2.min js/first-use js/appearance js/menus js/times js/keys "
    "js/notice @every-page"
)
BUNDLES = {
    "bundles/page.css": f"{PAGE} css/forms css/menus css/plain",
    "bundles/page.js": SCRIPTS,
    "bundles/home.css": (
        f"{PAGE} css/layout css/composer css/forms css/home attachments/attachments "
        "@list-page"
    ),
    "bundles/home.js": (
        f"{SCRIPTS} js/sidebar js/list js/drafts attachments/attachments js/home "
        "@list-page"
    ),
    "bundles/conversation.css": (
        f"{PAGE} {PANES} attachments/attachments @list-page @conversation-page"
    ),
    "bundles/conversation.js": (
        f"{SCRIPTS} django_htmx/ext/hx-ws-2.min js/sidebar js/list js/layout js/pieces "
        "js/live js/swap js/earlier js/new-letters js/connection js/drafts "
        "attachments/attachments js/outbox js/composer js/counterparts js/dialog "
        "js/reading @conversation-page js/code js/context @list-page"
    ),
    "bundles/shared.css": (
        f"{PAGE} css/menus {PANES} css/messages css/files css/sheets sharing/page"
    ),
    "bundles/shared.js": f"{SCRIPTS} js/reading js/code",
    "bundles/seen.js": "js/layout js/counterparts js/context",
}


class BundleFinder(finders.BaseFinder):
    """Finds bundles, made from the parts as they are now.

    So a change of a part is seen on reload; collectstatic hashes them as usual.
    """

    @cached_property
    def storage(self) -> FileSystemStorage:
        folder = tempfile.mkdtemp(prefix="bundles-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        return FileSystemStorage(location=folder)

    def check(self, **options: Any) -> list:
        return []

    def find(self, path: str, find_all: bool = False, **options: Any) -> Any:
        if path not in BUNDLES or not (made := self._make(path)):
            return []
        return [made] if find_all else made

    def list(self, ignore_patterns: Iterable[str] | None) -> Iterator[tuple]:
        for name in filter(self._make, BUNDLES):
            yield name, self.storage

    def _make(self, name: str) -> str | None:
        """Write the bundle unless it is the same; None if parts are not installed."""
        parts = [finders.find(part) for part in list_parts(name)]
        if not all(parts):
            return None
        target = Path(self.storage.path(name))
        joint = b"\n;\n" if name.endswith(".js") else b"\n"
        content = joint.join(Path(part).read_bytes() for part in parts)
        if not target.exists() or target.read_bytes() != content:
            target.parent.mkdir(exist_ok=True)
            # Another thread may be reading it.
            with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as file:
                file.write(content)
            os.replace(file.name, target)
        return str(target)


class CollectedFilesStorage(CompressedManifestStaticFilesStorage):
    """Hashed names once collectstatic has made them, plain names before.

    Stylesheets are collected without comments and indents.
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

    def _save(self, name: str, content: File) -> str:
        if name.endswith(".css"):
            css = COMMENTS.sub(rb"\1", b"".join(content.chunks()))
            content = ContentFile(INDENT.sub(b"\n", css))
        return super()._save(name, content)


def list_parts(name: str) -> list[str]:
    """Return the static paths of a bundle's parts, with those that apps add."""
    ending = Path(name).suffix
    found = []
    for part in BUNDLES[name].split():
        if part.startswith("@"):
            added = slots.static_files(part.removeprefix("@"))
            found += (each for each in added if each.endswith(ending))
        else:
            found.append(part + ending)
    return found
