"""A command that makes, replaces, retires and lists the keys that sign evidence."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from chatsite.contrib.evidence import signing_keys
from chatsite.contrib.evidence.models import SigningKey


class Command(BaseCommand):
    help = "Makes, rotates or retires the key that signs evidence, and lists all keys."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("action", choices=["make", "rotate", "retire", "list"])
        parser.add_argument("kid", nargs="?", default="", help="of the key to retire")

    def handle(self, *args: Any, **options: Any) -> None:
        action, kid = options["action"], options["kid"]
        if action == "make":
            if SigningKey.objects.filter(retired_at=None).exists():
                raise CommandError("There is a key already; rotate replaces it.")
            signing_keys.make_key_pair()
        elif action == "rotate":
            signing_keys.rotate_keys()
        elif action == "retire" and not signing_keys.retire_keys([kid]):
            raise CommandError(f"There is no key {kid!r} that is not retired.")
        for row in SigningKey.objects.all():
            until = row.retired_at and signing_keys.format_time(row.retired_at)
            began = signing_keys.format_time(row.created_at)
            state = f"retired {until}" if until else "signs"
            self.stdout.write(f"{row.kid}  {state}  made {began}")
