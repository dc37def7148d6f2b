"""What of the static files is served, and where their addresses come from."""

import re
from functools import cached_property

from django.conf import settings
from django.contrib.staticfiles.storage import StaticFilesStorage
from django.core.files.base import ContentFile, File
from whitenoise.storage import CompressedManifestStaticFilesStorage

# What stands in quotation marks is no comment; one without an end is all that follows.
COMMENTS = re.compile(rb"""("[^"\n]*"|'[^'\n]*')|/\*.*?(?:\*/\s*|\Z)""", re.DOTALL)


class CollectedFilesStorage(CompressedManifestStaticFilesStorage):
    """Hashed names once collectstatic has made them, plain names before. Stylesheets
    are collected without their comments."""

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

    def _save(self, name: str, content: File) -> str:
        if name.endswith(".css"):
            css = b"".join(content.chunks())
            content = ContentFile(COMMENTS.sub(rb"\1", css))
        return super()._save(name, content)
