"""A backup is restored into a scratch database, audited there, and nothing is left."""

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing

import psycopg
import pytest

from tests import plugin, warm_python
from tests.databases import copy_sqlite
from tests.patience import PATIENCE, wait_for
from tests.servers import ROOT, Site

CONVERSATION = """
from django.contrib.auth import get_user_model
from chatsite.turns import commands
from memory import transcript
from memory.models import Conversation
alice = get_user_model().objects.create_user("alice")
made = transcript.create_conversation(alice)
commands.submit_message(made, text="Hello", client_id="1")
# A reply was still to come, and that was long ago.
Conversation.objects.update(updated_at="2026-01-01T00:00:00Z")
"""
BREAK = "UPDATE memory_conversation SET next_seq = 1"


def verify(url, *args):
    """Return the exit code and the output."""
    environment = Site({"DATABASE_URL": url, "DEBUG": "true"}).environment()
    command = [str(ROOT / "manage.py"), "verify_backup", *map(str, args)]
    done = warm_python.run(command, environment)
    return done.returncode, done.stdout + done.stderr


def talk(url):
    site = Site({"DATABASE_URL": url, "DEBUG": "true"})
    site.manage("shell", "-v", "0", "-c", CONVERSATION)


@pytest.mark.database("sqlite")
class TestSqlite:
    @pytest.fixture
    def url(self, tmp_path):
        return copy_sqlite(tmp_path / "site.sqlite3")

    @pytest.fixture
    def backup(self, url, tmp_path):
        talk(url)
        path = tmp_path / "backup.sqlite3"
        with (
            closing(sqlite3.connect(tmp_path / "site.sqlite3")) as site,
            closing(sqlite3.connect(path)) as copy,
        ):
            site.backup(copy)
        return path

    def test_verify_backup_describes_a_backup_and_leaves_it_as_it_is(
        self, url, backup, tmp_path
    ):
        before = backup.read_bytes()
        with closing(sqlite3.connect(tmp_path / "site.sqlite3")) as site:
            site.execute(BREAK)
            site.commit()
        code, said = verify(url, backup)
        assert (code, said.splitlines()[1:]) == (0, ["clean"])
        assert said.startswith("1 conversations, newest message: 20")
        assert backup.read_bytes() == before

    def test_a_broken_promise_is_a_line(self, url, backup):
        with closing(sqlite3.connect(backup)) as copy:
            copy.execute(BREAK)
            copy.commit()
        code, said = verify(url, backup)
        assert code == 1
        assert "R6.number conversation=" in said

    def test_a_file_that_is_no_backup_is_a_sentence(self, url, tmp_path):
        (tmp_path / "text").write_text("hello" * 1000)
        assert verify(url, tmp_path / "text") == (
            1,
            "CommandError: This is no backup of SQLite: file is not a database.\n",
        )
        (tmp_path / "empty").touch()
        code, said = verify(url, tmp_path / "empty")
        assert (code, said) == (
            1,
            "CommandError: The backup has no tables of this site.\n",
        )
        code, said = verify(url, tmp_path / "gone")
        assert (code, "There is no file" in said) == (1, True)


@pytest.mark.database("postgresql")
class TestPostgresql:
    @pytest.fixture
    def url(self, new_database):
        with new_database() as url:
            talk(url)
            yield url
            # Nothing but what the cluster had.
            left = self.ask("SELECT datname FROM pg_database")
            assert not [name for (name,) in left if name.endswith("verify_backup")]

    @staticmethod
    def ask(statement, url=None):
        with psycopg.connect(url or plugin.cluster.url("postgres")) as opened:
            done = opened.execute(statement)
            return done.fetchall() if done.description else None

    @pytest.fixture
    def dump(self, url, tmp_path):
        return self.take(url, tmp_path / "site.dump")

    @staticmethod
    def take(url, path):
        command = ["pg_dump", "--format=custom", f"--file={path}", url]
        subprocess.run(command, check=True)
        return path

    def test_verify_backup_describes_a_dump(self, url, dump):
        self.ask(BREAK, url)
        code, said = verify(url, dump)
        assert (code, said.splitlines()[1:]) == (0, ["clean"])
        assert said.startswith("1 conversations, newest message: 20")

    def test_a_broken_promise_is_a_line(self, url, tmp_path):
        self.ask(BREAK, url)
        code, said = verify(url, self.take(url, tmp_path / "broken.dump"))
        assert code == 1
        assert "R6.number conversation=" in said

    def test_half_a_dump_is_a_sentence(self, url, dump):
        dump.write_bytes(dump.read_bytes()[:-5000])
        code, said = verify(url, dump)
        assert code == 1
        assert said.startswith(
            "CommandError: The backup can't be restored.\npg_restore:"
        )

    def test_a_dump_of_another_database_is_a_sentence(self, url, tmp_path):
        other = self.take(plugin.cluster.url("postgres"), tmp_path / "other.dump")
        assert verify(url, other) == (
            1,
            "CommandError: The backup has no tables of this site.\n",
        )

    def test_a_role_that_may_not_is_told_how(self, url, dump):
        self.ask("CREATE ROLE keeper LOGIN")
        try:
            code, said = verify(url.replace("postgres@", "keeper@"), dump)
        finally:
            self.ask("DROP ROLE keeper")
        assert code == 1
        assert "ALTER ROLE keeper CREATEDB;" in said

    @pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
    def test_ended_early_it_leaves_nothing_for_long(self, url, dump, tmp_path, how):
        os.mkfifo(tmp_path / "pipe")
        environment = Site({"DATABASE_URL": url, "DEBUG": "true"}).environment()
        command = [sys.executable, str(ROOT / "manage.py"), "verify_backup"]
        running = subprocess.Popen([*command, str(tmp_path / "pipe")], env=environment)
        scratch = "SELECT 1 FROM pg_database WHERE datname LIKE '%verify_backup'"
        with (tmp_path / "pipe").open("wb", buffering=0) as pipe:
            pipe.write(dump.read_bytes()[:1000])
            wait_for(lambda: self.ask(scratch), what="the scratch database")
            if how == signal.SIGTERM:
                assert "Another verify_backup is running" in verify(url, dump)[1]
            running.send_signal(how)
            assert running.wait(20 * PATIENCE) != 0
        if how == signal.SIGKILL:
            assert verify(url, dump)[1].splitlines()[1:] == ["clean"]
        assert self.ask(scratch) == []
