"""Settings of a site whose SQLite file stops growing as soon as a test says so: before
each statement a connection asks a file how many pages there may be.
"""

import os
from pathlib import Path

from django.db.backends.signals import connection_created

from chatsite.settings import *  # noqa: F403

NAME = "MAX_PAGES_FILE"


def environment(folder):
    return {"DJANGO_SETTINGS_MODULE": __name__, NAME: str(folder / "max_pages")}


def limit(topology):
    """Limit the database to its present number of pages."""
    ((pages,),) = topology.truth.query("PRAGMA page_count")
    Path(topology.env[NAME]).write_text(str(pages))


def lift(topology):
    Path(topology.env[NAME]).unlink()


class PageLimit:
    """The limit of one connection, which may stay open for as long as its process
    lives.
    """

    no_limit = 2**30
    pages = no_limit

    def __call__(self, execute, sql, params, many, context):
        try:
            pages = int(Path(os.environ[NAME]).read_text() or 0)
        except FileNotFoundError:
            pages = self.no_limit
        if pages and pages != self.pages:
            self.pages = pages
            raw = context["connection"].connection
            raw.execute(f"PRAGMA max_page_count = {pages}")
        return execute(sql, params, many, context)


def obey(sender, connection, **kwargs):
    # The tests themselves import this module, too.
    if NAME in os.environ and connection.vendor == "sqlite":
        connection.execute_wrappers.append(PageLimit())


connection_created.connect(obey)
