"""Files read by programs of their own, with limits on time and memory. One of each
person runs in this process of the site, and few of all.
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

# Files that wait or are read: of one person, and of all. Each is on the server's disk
# and has a thread meanwhile.
MOST_WAITING, MOST_WAITING_OF_ALL = 5, 100
# For each second of processor time that a program may take, it may last as many.
WAITS = 4
LIMITED = Path(__file__).with_name("limited.py")

Leave = Callable[[], Awaitable[None]]


class _Gate:
    """Who reads, and who waits: a person takes one of the places at a time."""

    def __init__(self) -> None:
        self.places = asyncio.Semaphore(settings.PDFS_AT_ONCE)
        self.own: dict[int, asyncio.Lock] = {}
        self.count: Counter[int] = Counter()

    @asynccontextmanager
    async def enter(self, user_id: int, leave: Leave) -> AsyncIterator[None]:
        if self.count[user_id] >= MOST_WAITING:
            raise FileError(
                "busy",
                _("Your other files are still being read. Wait until they are done."),
            )
        if self.count.total() >= MOST_WAITING_OF_ALL:
            raise FileError(
                "busy",
                _(
                    "Too many files are being read here just now. Try again in a "
                    "minute."
                ),
            )
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
    """What a turn lasts for that is awaited in it."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self.stack, self.has_turn = stack, False


_turn_scope: ContextVar[_TurnScope | None] = ContextVar("turn_scope", default=None)


@asynccontextmanager
async def keep_turn() -> AsyncIterator[None]:
    """A turn that is awaited in this block lasts until its end: what was read is held
    in memory by those alone who have one of the few places. In another such block, it
    lasts until the end of that."""
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
    """Until it is this file's turn. Raises FileError.

    `leave` is called once it is certain that this waits for other processes: give up
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
    """What the program answers to `data`: nothing where it reached a limit.

    It has `seconds` of processor time, `megabytes` of memory, and nothing of the site.
    It sets these limits before it reads a byte, and is stopped from outside if that
    fails. Raises FileError where the machine has too little time to give."""
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
    """What a program answers that reads documents, within their limits: the text, which
    a database can have, or the code of an error."""
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
    """The error of a program by its code; any other is that it took too much."""
    code = code if code in sentences else "too_complex"
    return FileError(str(code), sentences[str(code)] % values)
