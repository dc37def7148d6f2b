"""daphne with the flags that the site relies on: serve.py -b HOST -p PORT.

With --prepare first it migrates the database and, on a machine with DEBUG, makes sure
of the user demo. In one process, because importing everything is what takes the time.
"""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FLAGS = [
    # A socket may stay open for ever, and pings find the dead ones.
    "--websocket_timeout=-1",
    "--ping-interval=20",
    "--ping-timeout=20",
    # Nothing longer is a message of this site.
    "--websocket-max-message-size=262144",
    "--websocket-max-frame-size=262144",
    "--http-timeout=60",
    "--application-close-timeout=5",
    "--no-server-name",
]


def prepare() -> None:
    import django
    from django.conf import settings
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)
    if settings.DEBUG:
        with Path(os.devnull).open("w") as nowhere:
            arguments = ["demo", "demo", "--if-missing"]
            call_command("create_user", *arguments, stdout=nowhere)


def main(arguments: list[str]) -> None:
    os.chdir(ROOT)
    sys.path[0] = str(ROOT)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsite.settings")
    if "--prepare" in arguments:
        arguments.remove("--prepare")
        prepare()
    from daphne.cli import CommandLineInterface

    CommandLineInterface().run([*FLAGS, *arguments, "chatsite.asgi:application"])


if __name__ == "__main__":
    main(sys.argv[1:])
