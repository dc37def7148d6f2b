"""Reads one uploaded file, as a process of its own that the site starts and watches."""

import logging
import os
import resource
import sys
import threading
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser
from django.utils import translation

from chatsite.features.importing.storing import import_conversations
from memory.leases import Claim

logger = logging.getLogger(__name__)

# Replies and pages go first.
NICENESS = 10


class Command(BaseCommand):
    help = "Reads a file that was uploaded under Import. The site itself starts this."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("job", type=int)
        parser.add_argument("owner")
        parser.add_argument("file", type=int, help="an open file, by its descriptor")
        parser.add_argument("language")

    def handle(self, *args: Any, **options: Any) -> None:
        _limit_itself()
        threading.Thread(target=_end_with_the_site, daemon=True).start()
        claim = Claim(options["job"], options["owner"])
        with (
            translation.override(options["language"]),
            os.fdopen(options["file"], "rb") as file,
        ):
            file.seek(0)
            try:
                import_conversations(claim, file)
            except Exception:
                # The site sees by the exit code that the job was not ended.
                logger.exception("import crashed job=%s", claim.row_id)
                sys.exit(1)


def _limit_itself() -> None:
    limit = settings.IMPORT_MEMORY_MB * 1024 * 1024
    try:
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
        os.nice(NICENESS)
    except (OSError, ValueError) as error:
        # Where a service may not do that, its manager has to limit it.
        logger.warning("import not limited: %s", error)


def _end_with_the_site() -> None:
    """End this process when the site, which holds the other end of the pipe, ends."""
    sys.stdin.read()
    os._exit(1)
