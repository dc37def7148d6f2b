"""Files that wait in this process, and the processes that read them.

One import of each user waits or runs, and few run on the whole site.
"""

import logging
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import IO

from channels.db import database_sync_to_async
from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.core.files.uploadedfile import UploadedFile
from django.db import connections
from django.utils.translation import get_language, gettext, gettext_noop, override

from chatsite.jobs import queue
from chatsite.jobs.worker import RENEW_SECONDS
from chatsite.turns.models import JOB_LEASE, Job
from memory.database import TRANSIENT_DB_ERRORS, name_of
from memory.leases import Claim, LeaseStatus

from .files.reading import check_size
from .outcome import KIND

logger = logging.getLogger(__name__)

TOO_LONG = gettext_noop(
    "The import was stopped after %(minutes)s minutes, and nothing was stored. Split "
    "the file, or ask the site administrator to allow more."
)
CRASHED = gettext_noop(
    "The import was stopped: the file took more memory than an import may use, or "
    "something failed on this site. Nothing was stored. Split the file and try again."
)

CANCELLED = gettext_noop("The import was cancelled. Nothing was stored.")
State = Job.State


@dataclass(slots=True)
class _ImportRun:
    """A file with its job, and the process that reads it."""

    claim: Claim
    file: IO[bytes]
    language: str
    process: subprocess.Popen | None = None


waiting: list[_ImportRun] = []
running: list[_ImportRun] = []


def keep_upload(user: AbstractBaseUser, upload: UploadedFile) -> Job:
    """Keep the file for its turn. Raises ImportFileError and JobBusyError."""
    check_size(upload.size or 0)
    # Without a name: it is gone with the process.
    file = tempfile.TemporaryFile()  # noqa: SIM115
    try:
        for chunk in upload.chunks():
            file.write(chunk)
        file.flush()
        claim = queue.add(KIND, user, f"{KIND}:{user.pk}")
    except BaseException:
        file.close()
        raise
    language = get_language() or settings.LANGUAGE_CODE
    waiting.append(_ImportRun(claim, file, language))
    return Job.objects.get(pk=claim.row_id)


async def sweep_imports() -> None:
    await database_sync_to_async(_start_waiting)()


def _start_waiting() -> None:
    queue.keep(each.claim for each in waiting)
    for each in [*waiting]:
        if queue.begin(each.claim, settings.IMPORTS_AT_ONCE):
            waiting.remove(each)
            running.append(each)
            _start_process(each)
            threading.Thread(target=_see_through, args=[each], daemon=True).start()
        elif not JOB_LEASE.filter_held(each.claim).exists():
            waiting.remove(each)
            each.file.close()


def end_imports() -> None:
    """End the imports of this process, which holds their files."""
    for each in running:
        each.process.kill()
    while waiting:
        waiting.pop().file.close()


def _start_process(wanted: _ImportRun) -> None:
    """Read it in a process of its own, whose standard input ends with this one."""
    claim, number = wanted.claim, wanted.file.fileno()
    arguments = [str(claim.row_id), claim.owner, str(number), wanted.language]
    wanted.process = subprocess.Popen(  # noqa: S603
        [sys.executable, "manage.py", "import_file", *arguments],
        cwd=settings.BASE_DIR,
        stdin=subprocess.PIPE,
        pass_fds=[number],
    )


def _see_through(wanted: _ImportRun) -> None:
    try:
        _watch_process(wanted)
    except TRANSIENT_DB_ERRORS as error:
        # The sweep ends it when its lease has ended.
        logger.warning("import left job=%s: %s", wanted.claim.row_id, name_of(error))
    finally:
        running.remove(wanted)
        connections.close_all()


def _watch_process(wanted: _ImportRun) -> None:
    """Keep the job alive as long as its process works within its time."""
    end, why, state = monotonic() + settings.IMPORT_MAX_SECONDS, CRASHED, State.FAILED
    try:
        while wanted.process.poll() is None:
            status = _renew_lease(wanted.claim)
            if status is LeaseStatus.CANCELLED:
                why, state = CANCELLED, State.CANCELLED
            elif monotonic() > end:
                why = TOO_LONG
            elif status is LeaseStatus.KEPT:
                with suppress(subprocess.TimeoutExpired):
                    wanted.process.wait(RENEW_SECONDS)
                continue
            break
    finally:
        wanted.process.kill()
        wanted.process.wait()
        wanted.process.stdin.close()
        wanted.file.close()
    with override(wanted.language):
        minutes = round(settings.IMPORT_MAX_SECONDS / 60)
        error = gettext(why) % {"minutes": minutes}
        if queue.close_job(wanted.claim, state, error):
            logger.warning("import stopped job=%s", wanted.claim.row_id)


def _renew_lease(claim: Claim) -> LeaseStatus:
    try:
        return queue.JOBS.renew_claim(claim)
    except TRANSIENT_DB_ERRORS as error:
        logger.warning("import not renewed: %s", name_of(error))
        return LeaseStatus.KEPT
