"""PgBouncer in transaction mode between the site and PostgreSQL, set up as
docs/deploy.md says."""

import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import psycopg
import pytest

from tests import plugin
from tests.clients import Person
from tests.databases import MIGRATED
from tests.servers import ROOT, Server, Site

DOCS = (ROOT / "docs" / "deploy.md").read_text()
TALKERS, MESSAGES = 4, 5
# Two statements of a connection never meet the same server connection, if they can.
INI = """
[databases]
* = host=127.0.0.1 port={port} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {own}
auth_type = any
pool_mode = transaction
server_round_robin = 1
min_pool_size = 3
unix_socket_dir =
logfile = {folder}/pgbouncer.log
{documented}
"""


class PgBouncer(Server):
    """A PgBouncer as Debian has it; it refuses to run as root."""

    name = "pgbouncer"

    def __init__(self, behind: int) -> None:
        super().__init__()
        self.behind = behind

    def url(self, direct: str) -> str:
        return direct.replace(f":{self.behind}/", f":{self.port}/")

    def prepare(self) -> None:
        (documented,) = re.findall(r"`(ignore_startup_parameters = \w+)`", DOCS)
        values = {"port": self.behind, "own": self.port, "folder": self.folder}
        ini = self.folder / "pgbouncer.ini"
        ini.write_text(INI.format(documented=documented, **values))
        if os.geteuid() == 0:
            for path in (self.folder, ini):
                shutil.chown(path, "postgres", "postgres")

    def command(self) -> list[str]:
        path = f"{os.environ.get('PATH', '')}:/usr/sbin"
        program = shutil.which("pgbouncer", path=path)
        if not program:
            raise RuntimeError("pgbouncer not found: install it (make test does).")
        user = ["--user", "postgres"] if os.geteuid() == 0 else []
        return [program, *user, str(self.folder / "pgbouncer.ini")]

    def is_ready(self) -> bool:
        url = f"postgres://pgbouncer@127.0.0.1:{self.port}/pgbouncer"
        try:
            psycopg.connect(url, connect_timeout=5, autocommit=True).close()
        except psycopg.OperationalError:
            return False
        return True


@pytest.fixture(scope="module")
def direct():
    plugin.cluster.start()
    with plugin.cluster.database(MIGRATED) as url:
        yield url


@pytest.fixture(scope="module")
def pooled(direct):
    """The site's address of the database, by way of PgBouncer."""
    with PgBouncer(plugin.cluster.port) as pooler:
        for statement in re.findall(r"ALTER ROLE windowpane SET [^;]+;", DOCS):
            plugin.cluster.execute(statement.replace("windowpane", "postgres"))
        (option,) = re.findall(r"`(DISABLE_SERVER_SIDE_CURSORS=\w+)`", DOCS)
        yield f"{pooler.url(direct)}?{option}"
    plugin.cluster.execute("ALTER ROLE postgres RESET ALL")


@pytest.fixture
def site(pooled):
    with Site({"DATABASE_URL": pooled, "MESSAGES_PER_MINUTE": "0"}) as running:
        yield running


def talk(site, name):
    person = Person(site, name)
    path = person.create("langgraph")
    with person.chat(path) as chat:
        ends = [chat.say(f"Message {number}") for number in range(MESSAGES)]
    pages = [person.get(part) for part in ("/", path, f"{path}export.json")]
    return [end["state"] for end in ends], all(pages)


@pytest.mark.server
@pytest.mark.database("postgresql")
def test_people_chat_and_the_history_is_audited_meanwhile(site):
    names = [f"talker{number}" for number in range(TALKERS)]
    with ThreadPoolExecutor() as pool:
        talks = [pool.submit(talk, site, name) for name in names]
        audits = [site.manage("audit")]
        ends = [each.result() for each in talks]
    audits.append(site.manage("audit"))
    assert ends == [(["done"] * MESSAGES, True)] * TALKERS
    assert all("clean" in found for found in audits)


@pytest.mark.server
@pytest.mark.database("postgresql")
def test_pooler_keeps_the_limits_of_the_site(pooled):
    address = pooled.partition("?")[0]
    with closing(psycopg.connect(address)) as connection:
        names = ("lock_timeout", "idle_in_transaction_session_timeout")
        found = [connection.execute(f"SHOW {name}").fetchone()[0] for name in names]
    assert found == ["2s", "5s"]
