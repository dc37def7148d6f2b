"""Two addresses in DATABASE_URL: the site follows the server that can be written to."""

import os
import shutil

import psycopg
import pytest

from tests.databases import MIGRATED, Postgres
from tests.patience import wait_for
from tests.servers import Site, answers


class Standby(Postgres):
    """A copy of another cluster that follows it: same port, next address."""

    address = "127.0.0.2"

    def __init__(self, primary: Postgres) -> None:
        super().__init__(primary.port)
        self.primary = primary

    def url(self, database: str = "windowpane") -> str:
        return super().url(database).replace("127.0.0.1", self.address)

    def command(self) -> list[str]:
        return [*super().command(), "-c", f"listen_addresses={self.address}"]

    def make_data(self) -> None:
        if os.geteuid() == 0:
            shutil.chown(self.folder, "postgres", "postgres")
        command = [self._binary("pg_basebackup"), "--pgdata", str(self.data)]
        command += ["--dbname", self.primary.url("postgres"), "--checkpoint=fast"]
        with self.log_path.open("ab") as log:
            copying = self.spawn([*command, "--write-recovery-conf"], log)
        assert copying.wait() == 0, self.log()


@pytest.mark.server
@pytest.mark.database("postgresql")
def test_the_site_goes_on_with_the_server_that_was_promoted():
    with Postgres() as first:
        first.execute("CREATE DATABASE {} TEMPLATE {}", "windowpane", MIGRATED)
        with Standby(first) as second:
            hosts = f"{second.address},127.0.0.1:{first.port}"
            url = f"postgres://postgres@{hosts}/windowpane"
            url += "?target_session_attrs=read-write"
            with Site({"DATABASE_URL": url}) as site:
                ready = f"{site.url}/readyz"
                # The standby stands first, and can only be read.
                wait_for(lambda: answers(ready), what="the primary")
                first.kill()
                with psycopg.connect(second.url("postgres")) as connection:
                    connection.execute("SELECT pg_promote()")
                wait_for(lambda: answers(ready), what="the promoted standby")
