"""Django's own command, for a site that serves meanwhile.

A change of a large table takes its time, but the command waits for a lock in short
tries, and works out nothing while it holds one.
"""

import random
import time
from collections.abc import Iterator
from contextlib import nullcontext
from copy import copy
from functools import partial
from typing import Any

from django.core.management import CommandError
from django.core.management.commands import migrate
from django.db import OperationalError, connections
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations import Migration
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.operations import RunPython
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState
from django.db.transaction import atomic

from memory.sql import without_limits

# Three of them, for what a new table refers to, are less than the second after which
# PostgreSQL looks for a deadlock: a request can stand in line since the first, hold
# what the last is for, and would look first. So the migration always gives way.
LOCK_MS = 250
TRIES = 120
# SQLSTATE of lock_not_available and deadlock_detected.
LOCKED = ("55P03", "40P01")


# An operation with the models before and after it.
Prepared = tuple[Operation, ProjectState, ProjectState]


class ReadyExecutor(MigrationExecutor):
    """An executor that puts the models of a migration together before its transaction.

    Django does it between the statements: a hundred milliseconds for each, in which the
    tables are locked that the statements before have changed, and seconds on a busy
    machine.
    """

    def apply_migration(
        self, state: ProjectState, migration: Migration, *args: Any, **options: Any
    ) -> ProjectState:
        prepared = list(_prepare_operations(migration, state.clone()))
        ready = copy(migration)
        ready.apply = partial(_apply_prepared, ready, prepared)
        return super().apply_migration(state, ready, *args, **options)


def _prepare_operations(
    migration: Migration, state: ProjectState
) -> Iterator[Prepared]:
    for operation in migration.operations:
        after = state.clone()
        operation.state_forwards(migration.app_label, after)
        if isinstance(operation, RunPython):
            # It would put all models together again, as some may lack relations.
            state.clear_delayed_apps_cache()
            state.is_delayed = False
        # Rendered at the first look.
        state.apps, after.apps  # noqa: B018
        yield operation, state, after
        state = after


def _apply_prepared(
    migration: Migration,
    prepared: list[Prepared],
    state: ProjectState,
    editor: BaseDatabaseSchemaEditor,
) -> ProjectState:
    """Apply the operations in the way of Migration.apply()."""
    for operation, before, after in prepared:
        is_atomic = operation.atomic or (
            migration.atomic and operation.atomic is not False
        )
        is_alone = is_atomic and not editor.atomic_migration
        with atomic(editor.connection.alias) if is_alone else nullcontext():
            operation.database_forwards(migration.app_label, editor, before, after)
        state = after
    return state


# Django's command has no other place for it.
migrate.MigrationExecutor = ReadyExecutor


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
    """Close the connection, and its transaction with it.

    Django's schema editor does not end its transaction when one of its last statements
    fails, as when it adds a foreign key.
    """
    connections[alias].connection.close()
    connections[alias].close()
    del connections[alias]
