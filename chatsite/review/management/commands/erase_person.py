"""Erases a user with all their data, as the page of the admin does.

Without a code it shows what would be erased, and the code that erases it.
"""

from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser

from chatsite.review.actions import erasing, people
from memory.actions import ActionError
from memory.models import Conversation


class Command(BaseCommand):
    help = "Erases an account with all data of the user; a deletion record stays."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="the user name, or the number of the account")
        parser.add_argument("--reason", default="", help="kept with the record")
        parser.add_argument("--code", default="", help="as it is printed without one")

    def handle(self, *args: Any, **options: Any) -> None:
        user = _find_person(options["name"])
        if not options["code"]:
            self._describe(user)
            return
        if options["code"] != people.code_of_person(user):
            raise CommandError("This is not the code: run the command without one.")
        if not options["reason"].strip():
            raise CommandError("Give the reason, which is kept: --reason TEXT.")
        try:
            stone = people.erase_person(user, reason=options["reason"].strip())
        except ActionError as error:
            raise CommandError(str(error)) from None
        self.stdout.write(
            f"Account {stone.account} was erased; deletion record {stone.pk} stays. "
            "manage.py scrub rewrites the database's files without what was erased."
        )

    def _describe(self, user: Any) -> None:
        rows = Conversation.objects.filter(owner=user)
        for name, count in erasing.count_rows(rows).items():
            self.stdout.write(f"{count:>9,} {name.replace('_', ' ')}")
        self.stdout.write(
            f"of account {user.pk}, {user.get_username()}, would be erased. To do it: "
            f"--code {people.code_of_person(user)} --reason TEXT"
        )


def _find_person(name: str) -> Any:
    people_of_site = get_user_model()._default_manager
    user = people_of_site.filter(username=name).first()
    if user is None and name.isascii() and name.isdecimal() and len(name) < 19:
        user = people_of_site.filter(pk=int(name)).first()
    if user is None:
        raise CommandError(f"There is no account {name!r}.")
    return user
