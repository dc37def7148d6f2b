"""Delete at once what the next night would delete, count it, or restore conversations.

Conversations that were deleted in the last nights can be restored.
"""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from chatsite.features.retention import services


class Command(BaseCommand):
    help = "Deletes what is older than the settings RETENTION_… say."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--dry-run", action="store_true", help="count, and delete nothing"
        )

        parser.add_argument(
            "--undo",
            action="store_true",
            help="bring back the conversations that are not erased yet",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["undo"]:
            count = services.restore_deleted()
            self.stdout.write(
                f"{count:,} conversations were brought back. The next night deletes "
                "them again, unless you change RETENTION_DAYS."
            )
            return
        if options["dry_run"]:
            self._print(services.count_old())
            self.stdout.write("would be deleted; nothing was.")
            return
        run = services.begin_run()
        while services.delete_batch(run):
            pass
        run.refresh_from_db()
        self._print({kind.name: getattr(run, kind.name) for kind in services.KINDS})
        self.stdout.write(f"were deleted in the run of {run.day}.")

    def _print(self, counts: dict[str, int]) -> None:
        for name, count in counts.items():
            self.stdout.write(f"{count:>9,} {name}")
