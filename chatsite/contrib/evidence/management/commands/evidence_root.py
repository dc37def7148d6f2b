"""A command that publishes the roots of the days whose evidence is complete."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from chatsite.contrib.evidence import transparency


class Command(BaseCommand):
    help = "Appends the root hash of each new complete day to EVIDENCE_ROOT_FILE."

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.EVIDENCE_ROOT_FILE:
            raise CommandError("EVIDENCE_ROOT_FILE names no file.")
        for line in transparency.publish_roots():
            self.stdout.write(line)
