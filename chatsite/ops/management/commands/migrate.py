"""Django's own command, without the limits of a process that serves: a change of a
large table takes its time, and it waits for the locks that it needs.
"""

from typing import Any

from django.core.management.commands import migrate
from django.db import connections

from memory.sql import without_limits


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        with without_limits(connections[options["database"]]):
            super().handle(*args, **options)
