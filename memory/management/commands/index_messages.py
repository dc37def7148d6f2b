"""Index messages that were written without the application."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from memory.search import recall


class Command(BaseCommand):
    help = "Adds the messages that the search index does not have."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--again",
            action="store_true",
            help="index every message, as after a change of how texts are read",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        count = recall.index_all(again=options["again"])
        self.stdout.write(self.style.SUCCESS(f"Indexed {count:,} messages."))
