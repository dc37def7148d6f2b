"""Errors of files that can't be attached."""

from collections.abc import Sequence

from django.utils.translation import gettext as _

from memory.transcript import TextError

from .encodings import EncodingChoice


class FileError(TextError):
    """A file that is refused at its upload; `detail` says what to do instead."""


class UnsureError(FileError):
    """A text that may be in one of several encodings: the user has to choose."""

    def __init__(self, readings: Sequence[EncodingChoice]) -> None:
        words = _(
            "The file does not say which encoding its letters are in. Choose the "
            "reading that is right, or save the file as UTF-8 and attach it again."
        )
        super().__init__("unsure_encoding", words)
        self.readings = readings
