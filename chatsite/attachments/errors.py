"""Why a file can't be attached."""

from memory.transcript import TextError


class FileError(TextError):
    """A file that is refused at its upload; `detail` says what to do instead."""
