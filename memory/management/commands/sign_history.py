"""Sign rows that were written without the application, or all with a new key."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.db import transaction

from memory import prompts
from memory.integrity import signatures
from memory.models import Message, ModelCall, Summary


class Command(BaseCommand):
    help = (
        "Signs messages, summaries and requests that have no signature. Run audit "
        "first: a signature vouches for a row as it is now."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--again",
            action="store_true",
            help="sign every row, as after a change of SIGNING_KEY",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        with transaction.atomic():
            count = sum(
                signatures.sign_all(model, again=options["again"])
                for model in (Message, Summary, ModelCall)
            )
            # Code that wrote rows without a signature may not have linked prompts.
            prompts.link_all()
        self.stdout.write(self.style.SUCCESS(f"Signed {count:,} rows."))
