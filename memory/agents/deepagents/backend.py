"""Where files of a history are written."""

from collections.abc import Sequence
from typing import Any, Protocol


class Backend(Protocol):
    """What is used of Deep Agents' `BackendProtocol`: files by their absolute path.

    Results have an `error`, and those of a download also a `content` in bytes.
    """

    def download_files(self, paths: list[str]) -> Sequence[Any]: ...

    def upload_files(self, files: list[tuple[str, bytes]]) -> Sequence[Any]: ...

    def write(self, file_path: str, content: str) -> Any: ...

    def edit(self, file_path: str, old_string: str, new_string: str) -> Any: ...
