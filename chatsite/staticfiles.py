"""Where the addresses of static files come from."""

from django.contrib.staticfiles.storage import StaticFilesStorage
from whitenoise.storage import CompressedManifestStaticFilesStorage


class CollectedFilesStorage(CompressedManifestStaticFilesStorage):
    """Hashed names once collectstatic has made them, plain names before."""

    def url(self, name: str, force: bool = False) -> str:
        if not self.hashed_files:
            return StaticFilesStorage.url(self, name)
        return super().url(name, force)
