"""Makes a user from a script, without asking anything."""

from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser, Permission
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

# See chatsite.review.rights; handing over and erasing are granted by hand.
READING = ("view_metadata", "read_content")


def let_review(user: AbstractBaseUser) -> None:
    """Let a user look at all conversations in the admin."""
    user.is_staff = True
    user.save(update_fields=["is_staff"])
    rows = Permission.objects.filter(content_type__app_label="memory")
    user.user_permissions.set(rows.filter(codename__in=READING))


class Command(BaseCommand):
    help = "Creates a user. The password is taken as it is, without any rules."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")
        parser.add_argument("password")
        parser.add_argument(
            "--staff",
            action="store_true",
            help="may read all conversations in the admin",
        )
        parser.add_argument(
            "--if-missing",
            action="store_true",
            help="leave the user as it is, and succeed, if the name is taken",
        )

    @transaction.atomic
    def handle(self, *args: Any, **options: Any) -> None:
        name = options["name"]
        if get_user_model().objects.filter(username=name).exists():
            if not options["if_missing"]:
                raise CommandError(f"There is a user {name!r} already.")
            self._say(f"User {name!r} is there already.", options)
            return
        if not options["password"]:
            raise CommandError("The password is empty.")
        user = get_user_model()(username=name)
        user.set_password(options["password"])
        try:
            user.full_clean()
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from error
        user.save()
        if options["staff"]:
            let_review(user)
        self._say(self.style.SUCCESS(f"User {name!r} created."), options)

    def _say(self, text: str, options: dict[str, Any]) -> None:
        if options["verbosity"]:
            self.stdout.write(text)
