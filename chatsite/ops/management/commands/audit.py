"""Checks the promises that the database can show: one line for each that is broken."""

from itertools import chain
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

import chatsite.turns.audit
import memory.integrity.audit


class Command(BaseCommand):
    help = "Checks the invariants of all conversations; exits with 1 if one is broken."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--skip-hashes",
            action="store_true",
            help="do not rebuild the context of every reply (much faster)",
        )
        parser.add_argument(
            "--at-rest",
            action="store_true",
            help="no process runs: turns that wait for one are no violation",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        in_memory = memory.integrity.audit.check_memory(
            hashes=not options["skip_hashes"]
        )
        count = 0
        in_turns = chatsite.turns.audit.check_turns(at_rest=options["at_rest"])
        for violation in chain(in_memory, in_turns):
            self.stdout.write(str(violation))
            count += 1
        if unknown := memory.integrity.audit.count_unknown_requests():
            self.stdout.write(
                f"{unknown} requests of other clients were not checked: `endpoint` "
                "is not in EXTRAS."
            )
        if count:
            raise SystemExit(1)
        self.stdout.write(self.style.SUCCESS("clean"))
