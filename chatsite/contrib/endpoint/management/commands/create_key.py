"""A command that makes an API key and prints it."""

from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser

from chatsite.contrib.endpoint import keys
from chatsite.contrib.endpoint.access.gateway import find_token_secret
from chatsite.contrib.endpoint.models import ApiKey


class Command(BaseCommand):
    help = "Makes an API key for a user and prints it: the only time that it is shown."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", help="the name of the user it sends as")
        parser.add_argument("--name", default="command line", help="of the client")
        parser.add_argument("--mode", choices=ApiKey.Mode.values, default="observe")
        parser.add_argument("--kind", choices=ApiKey.KeyKind.values, default="person")
        parser.add_argument("--scope", default=keys.SEND, help="send, read, or both")
        parser.add_argument(
            "--days", type=int, default=0, help="0: until it is revoked"
        )
        parser.add_argument("--tokens-per-day", type=int, default=None)
        parser.add_argument("--models", default="", help="separated by commas")

    def handle(self, *args: Any, **options: Any) -> None:
        owner = get_user_model().objects.filter(username=options["user"]).first()
        if owner is None:
            raise CommandError(f"There is no user {options['user']!r}.")
        if options["kind"] == ApiKey.KeyKind.GATEWAY and not owner.is_staff:
            raise CommandError("A key of a gateway has to be one of staff.")
        scopes = options["scope"].split(",")
        if wrong := [name for name in scopes if name not in keys.SCOPES]:
            raise CommandError(f"There is no scope {wrong[0]!r}; use send or read.")
        try:
            made, key = keys.create_api_key(
                owner,
                options["name"][:60],
                days=max(0, options["days"]),
                scopes=scopes,
                mode=options["mode"],
                kind=options["kind"],
                models_allowed=[name for name in options["models"].split(",") if name],
                tokens_per_day=options["tokens_per_day"],
            )
        except keys.KeyLimitError as error:
            raise CommandError(str(error)) from error
        if made.kind == ApiKey.KeyKind.GATEWAY and settings.GATEWAY_SECRET_PER_KEY:
            # Not where scripts read the key.
            self.stderr.write(f"Secret of its tokens: {find_token_secret(made)}")
        self.stdout.write(key)
