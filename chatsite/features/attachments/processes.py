"""Programs that read files, with limits on time and memory.

One program of each user runs in this process of the site, and few of all users.
"""

import asyncio
import json
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from django.conf import settings
from django.utils.translation import gettext as _

from .errors import FileError

# Files of one user, and of all, that wait or are read. Each is on the server's disk
# and has a thread meanwhile.
MOST_WAITING, MOST_WAITING_OF_ALL = 5, 100
# For each second of processor time that a program may take, it may last as many.
WAITS = 4
LIMITED = Path(__file__).with_name("limited.py")

Leave = Callable[[], Awaitable[None]]


class _Gate:
    """The queue for the reading slots: each user has at most one slot at a time."""

    def __init__(self) -> None:
        self.places = asyncio.Semaphore(settings.PDFS_AT_ONCE)
        self.own: dict[int, asyncio.Lock] = {}
        self.count: Counter[int] = Counter()

    @asynccontextmanager
    async def enter(self, user_id: int, leave: Leave) -> AsyncIterator[None]:
        if self.count[user_id] >= MOST_WAITING:
            text = _("Your other files are still being read. Wait until they are done.")
            raise FileError("busy", text)
        if self.count.total() >= MOST_WAITING_OF_ALL:
            text = _(
                "Too many files are being read here just now. Try again in a minute."
            )
            raise FileError("busy", text)
        self.count[user_id] += 1
        own = self.own.setdefault(user_id, asyncio.Lock())
        try:
            await leave()
            async with own, self.places:
                yield
        finally:
            self.count[user_id] -= 1
            if not self.count[user_id]:
                del self.count[user_id], self.own[user_id]


# One for each event loop, of which a process of the site has one.
_gates: WeakKeyDictionary[asyncio.AbstractEventLoop, _Gate] = WeakKeyDictionary()


class _TurnScope:
    """The block in which an awaited turn is held, see keep_turn()."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self.stack, self.has_turn = stack, False


_turn_scope: ContextVar[_TurnScope | None] = ContextVar("turn_scope", default=None)


@asynccontextmanager
async def keep_turn() -> AsyncIterator[None]:
    """Hold a turn that is awaited in this block until the end of the block.

    So only the few holders of a slot keep a file in memory. In a nested block, the turn
    is held until the end of the outer one.
    """
    if _turn_scope.get():
        yield
        return
    async with AsyncExitStack() as stack:
        token = _turn_scope.set(_TurnScope(stack))
        try:
            yield
        finally:
            _turn_scope.reset(token)


@asynccontextmanager
async def await_turn(user_id: int, leave: Leave) -> AsyncIterator[None]:
    """Wait until it is this file's turn. Raises FileError.

    `leave` is called once it is certain that this waits for other processes: release
    there what others wait for.
    """
    gate = _gates.setdefault(asyncio.get_running_loop(), _Gate())
    scope = _turn_scope.get()
    if scope is None:
        async with gate.enter(user_id, leave):
            yield
        return
    # It has one already where a file is read in another way as well.
    if not scope.has_turn:
        await scope.stack.enter_async_context(gate.enter(user_id, leave))
        scope.has_turn = True
    yield


async def run_program(
    program: Path, *arguments: int | str, data: bytes, seconds: int, megabytes: int
) -> bytes:
    """Return the program's answer to `data`, b"" if it reached a limit.

    It has `seconds` of processor time, `megabytes` of memory, and nothing of the site.
    It sets these limits before it reads a byte, and is stopped from outside if that
    fails. Raises FileError if the machine has too little time to give.
    """
    limits = (seconds, megabytes * 1024 * 1024)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I"),
        *map(str, (LIMITED, *limits, program, *arguments)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        cwd="/",
        env={},
    )
    try:
        # It comes after all others on the machine, and may get little of its time.
        async with asyncio.timeout(WAITS * seconds):
            answer, _errors = await process.communicate(data)
        return answer
    except TimeoutError:
        text = _("The site is too busy to read this file. Try again in a minute.")
        raise FileError("busy", text) from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def read_document(
    program: Path, *arguments: int | str, data: bytes
) -> dict[str, Any]:
    """Return the answer of a program that reads documents, within their limits.

    It has the text, cleaned for the database, or the code of an error.
    """
    said = await run_program(
        program,
        *arguments,
        data=data,
        seconds=settings.PDF_MAX_SECONDS,
        megabytes=settings.PDF_MEMORY_MB,
    )
    try:
        answer = json.loads(said)
        texts = {name: answer[name] for name in ("text", "title") if name in answer}
        return answer | {name: _make_storable(texts[name]) for name in texts}
    except (AttributeError, TypeError, ValueError):
        return {"error": "too_complex"}


def _make_storable(text: str) -> str:
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def make_refusal(
    sentences: Mapping[str, str], code: object, values: Mapping[str, Any]
) -> FileError:
    """Return the error of a program by its code; unknown codes mean "too complex"."""
    code = code if code in sentences else "too_complex"
    return FileError(str(code), sentences[str(code)] % values)
