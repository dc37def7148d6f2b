"""The backends of history files, and how their functions are called."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol


class SyncBackend(Protocol):
    """The used part of Deep Agents' `BackendProtocol`: files by absolute path.

    Results have an `error`, and those of a download also a `content` in bytes.
    """

    def download_files(self, paths: list[str]) -> Sequence[Any]: ...

    def upload_files(self, files: list[tuple[str, bytes]]) -> Sequence[Any]: ...

    def write(self, file_path: str, content: str) -> Any: ...

    def edit(self, file_path: str, old_string: str, new_string: str) -> Any: ...


class AsyncBackend(Protocol):
    """A backend with Deep Agents' names for functions that are awaited."""

    async def adownload_files(self, paths: list[str]) -> Sequence[Any]: ...

    async def aupload_files(self, files: list[tuple[str, bytes]]) -> Sequence[Any]: ...

    async def awrite(self, file_path: str, content: str) -> Any: ...

    async def aedit(self, file_path: str, old_string: str, new_string: str) -> Any: ...


Backend = SyncBackend | AsyncBackend


@dataclass(frozen=True, slots=True)
class FileCaller:
    """A backend, called from a thread in the way the agent was called.

    `loop` is that of an agent that is awaited: its backend's functions with `a` are
    awaited there, since what they keep open belongs to it. Without a loop the others
    are called. A backend may have one kind only.
    """

    backend: Backend
    loop: asyncio.AbstractEventLoop | None = None

    def call_function(self, name: str, *args: Any) -> Any:
        asynchronous = getattr(self.backend, f"a{name}", None)
        if self.loop and asynchronous:
            made = asynchronous(*args)
            return asyncio.run_coroutine_threadsafe(made, self.loop).result()
        function = getattr(self.backend, name, None)
        try:
            if function:
                return function(*args)
        except NotImplementedError:
            if not asynchronous:
                raise
        made = (asynchronous or getattr(self.backend, name))(*args)
        # The thread of the caller may have a loop of its own, which waits meanwhile.
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, made).result()
