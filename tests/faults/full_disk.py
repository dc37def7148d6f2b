"""Settings of a site whose SQLite file stops to grow as soon as a test says so: each
connection asks a file how many pages there may be.
"""

import os
from pathlib import Path

from django.db.backends.signals import connection_created

from chatsite.settings import *  # noqa: F403

NAME = "MAX_PAGES_FILE"


def environment(folder):
    return {"DJANGO_SETTINGS_MODULE": __name__, NAME: str(folder / "max_pages")}


def limit(topology):
    """From now on not one page more."""
    ((pages,),) = topology.truth.query("PRAGMA page_count")
    Path(topology.env[NAME]).write_text(str(pages))


def lift(topology):
    Path(topology.env[NAME]).unlink()


def obey(sender, connection, **kwargs):
    path = Path(os.environ.get(NAME, "/nowhere"))
    if path.exists():
        with connection.cursor() as cursor:
            cursor.execute(f"PRAGMA max_page_count = {int(path.read_text())}")


connection_created.connect(obey)
