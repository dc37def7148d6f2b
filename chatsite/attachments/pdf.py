"""PDFs read in processes of their own, with limits on time, memory, pages and text. One
of each person runs in this process of the site, and few of all.
"""

import asyncio
import json
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO
from weakref import WeakKeyDictionary

from django.conf import settings
from django.utils.translation import gettext as _

from memory.transcript import WHOLE_CHARS

from .errors import FileError

PROGRAM = Path(__file__).with_name("pdf_text.py")
MAX_PAGES = 1_000
# Files that wait or are read: of one person, and of all. Each is on the server's disk
# and has a thread meanwhile.
MOST_WAITING, MOST_WAITING_OF_ALL = 5, 100

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
                _("Your other PDFs are still being read. Wait until they are done."),
            )
        if self.count.total() >= MOST_WAITING_OF_ALL:
            raise FileError(
                "busy",
                _("Too many PDFs are being read here just now. Try again in a minute."),
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


async def read_pdf(user_id: int, file: IO[bytes], leave: Leave) -> str:
    """The text of a PDF, its pages parted by empty lines. Raises FileError.

    `leave` is called once it is certain that this waits for other processes: give up
    there what others wait for. The file is read into memory when it is its turn.
    """
    gate = _gates.setdefault(asyncio.get_running_loop(), _Gate())
    async with gate.enter(user_id, leave):
        answer = await _run_program(file.read())
    text = answer.get("text")
    if isinstance(text, str):
        return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
    raise _make_refusal(str(answer.get("error")), answer.get("count"))


async def _run_program(data: bytes) -> dict[str, object]:
    limits = (
        settings.PDF_MAX_SECONDS,
        settings.PDF_MEMORY_MB * 1024 * 1024,
        MAX_PAGES,
        WHOLE_CHARS,
    )
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", str(PROGRAM), *map(str, limits)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        cwd="/",
        env={},
    )
    try:
        # Its processor time ends before: this is for one that only waits.
        async with asyncio.timeout(2 * settings.PDF_MAX_SECONDS):
            answer, _errors = await process.communicate(data)
        return json.loads(answer)
    except (TimeoutError, ValueError):
        return {"error": "too_complex"}
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _make_refusal(code: str, count: object) -> FileError:
    sentences = {
        "encrypted": _(
            "The PDF is protected with a password. Save a copy without one and attach "
            "that."
        ),
        "too_many_pages": _(
            "The PDF has %(count)s pages; the limit is %(limit)s. Attach only the "
            "pages that matter."
        ),
        "too_long": _(
            "The PDF has more than %(chars)s characters of text. Attach only the pages "
            "that matter."
        ),
        "no_text": _(
            "The PDF has no text: its pages are probably scanned pictures. Run text "
            "recognition (OCR) on it first, or paste the text."
        ),
        "broken": _(
            "The PDF can't be read: it is damaged or incomplete. Open it elsewhere, "
            "save it again and attach that."
        ),
        "too_complex": _(
            "The PDF takes too much time or memory to read. Attach only the pages that "
            "matter, or paste the text."
        ),
    }
    code = code if code in sentences else "too_complex"
    values = {"count": count, "limit": MAX_PAGES, "chars": f"{WHOLE_CHARS:,}"}
    return FileError(code, sentences[code] % values)
