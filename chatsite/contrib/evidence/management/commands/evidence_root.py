"""A command that appends the roots of complete days to a file, to be published."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from chatsite.contrib.evidence import transparency


class Command(BaseCommand):
    help = "Appends the root hash of each new complete day to EVIDENCE_ROOT_FILE."

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.EVIDENCE_ROOT_FILE:
            raise CommandError("EVIDENCE_ROOT_FILE names no file.")
        for line in transparency.append_roots():
            self.stdout.write(line)
