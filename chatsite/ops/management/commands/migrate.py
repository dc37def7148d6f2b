"""Django's own command, for a site that serves meanwhile: a change of a large table
takes its time, but a lock that is not free is waited for in short tries.
"""

import random
import time
from typing import Any

from django.core.management import CommandError
from django.core.management.commands import migrate
from django.db import OperationalError, connections

from memory.sql import without_limits

# Less than the second after which PostgreSQL looks for a deadlock, and than the two
# seconds that a serving process waits: so it is always the migration that gives way,
# and what stands in line behind it goes on.
LOCK_MS = 900
TRIES = 60
# SQLSTATE of lock_not_available and deadlock_detected.
LOCKED = ("55P03", "40P01")


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        for _try in range(TRIES):
            try:
                with without_limits(connections[options["database"]], lock_ms=LOCK_MS):
                    return super().handle(*args, **options)
            except OperationalError as error:
                if getattr(error.__cause__, "sqlstate", None) not in LOCKED:
                    raise
            # A migration is one transaction, or can be interrupted: those before this
            # one are done, and this one begins again or goes on.
            self.stdout.write(" the site holds a lock, trying again")
            _drop_connection(options["database"])
            time.sleep(random.uniform(0.2, 1))  # noqa: S311
        raise CommandError(
            f"The site held a lock in each of {TRIES} tries. What was migrated stays; "
            "run the command again, in a quieter moment."
        )


def _drop_connection(alias: str) -> None:
    """Django's schema editor does not end its transaction when one of its last
    statements fails, as when it adds a foreign key."""
    connections[alias].connection.close()
    connections[alias].close()
    del connections[alias]
