"""What of the static files is served, and where their addresses come from."""

import re

from django.contrib.staticfiles.storage import StaticFilesStorage
from django.core.files.base import ContentFile, File
from whitenoise.storage import CompressedManifestStaticFilesStorage

# What stands in quotation marks is no comment.
COMMENTS = re.compile(rb"""("[^"\n]*"|'[^'\n]*')|/\*.*?\*/\s*""", re.DOTALL)


class CollectedFilesStorage(CompressedManifestStaticFilesStorage):
    """Hashed names once collectstatic has made them, plain names before. Stylesheets
    are collected without their comments."""

    def url(self, name: str, force: bool = False) -> str:
        if not self.hashed_files:
            return StaticFilesStorage.url(self, name)
        return super().url(name, force)

    def _save(self, name: str, content: File) -> str:
        if name.endswith(".css"):
            css = b"".join(content.chunks())
            content = ContentFile(COMMENTS.sub(rb"\1", css))
        return super()._save(name, content)
