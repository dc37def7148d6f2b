"""The start of scripts/serve.py, its messages to a service manager, and its log."""

import io
import os
import socket
import sqlite3
import subprocess
import sys
import urllib.request
from contextlib import closing

import pytest

from chatsite.ops.logs import AccessLog
from scripts import serve

from . import warm_python
from .clients import Person
from .databases import copy_sqlite
from .patience import wait_for
from .servers import ROOT, Site


@pytest.mark.parametrize("prefix", ["", "@"])
def test_socket_of_the_service_manager_is_notified(monkeypatch, tmp_path, prefix):
    path = str(tmp_path / "notify")
    monkeypatch.setenv("NOTIFY_SOCKET", prefix + path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind("\0" + path if prefix else path)
        manager.settimeout(5)
        serve.notify_systemd(b"READY=1")
        assert manager.recv(64) == b"READY=1"


def test_server_is_silent_without_a_socket(monkeypatch):
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    sent = []
    monkeypatch.setattr(socket.socket, "sendto", lambda *args: sent.append(args))
    serve.notify_systemd(b"READY=1")
    assert sent == []


class LoggingSite(Site):
    """Started as by `make run`, which logs each request."""

    def command(self):
        command = super().command()
        at = command.index("--verbosity")
        return [*command[:at], *command[at + 2 :]]


@pytest.mark.server
def test_the_access_log_keeps_no_query_strings(new_database):
    with new_database() as url, LoggingSite({"DATABASE_URL": url}) as site:
        urllib.request.urlopen(f"{site.url}/accounts/login/?q=secret-wish").close()
        wait_for(lambda: "GET /accounts/login/" in site.log(), what="the line")
        assert "secret-wish" not in site.log()


class FreshSite(Site):
    """`make run` after its set-up, in a Python that has imported nothing."""

    is_warm = False

    def command(self):
        return [str(ROOT / "scripts" / "run.sh")]

    def environment(self):
        return {**super().environment(), "PORT": str(self.port)}


@pytest.mark.server
@pytest.mark.database("sqlite")
def test_make_run_serves_an_empty_database(tmp_path):
    path = tmp_path / "db.sqlite3"
    with FreshSite({"DATABASE_URL": f"sqlite:///{path}", "DEBUG": "true"}) as site:
        alice = Person(site, "alice")
        with alice.chat(alice.create()) as chat:
            assert chat.say("Hello")["state"] == "done"
    with closing(sqlite3.connect(path)) as database:
        users = database.execute("SELECT username FROM auth_user ORDER BY id")
        assert [name for (name,) in users] == ["demo", "alice"]


@pytest.mark.database("sqlite")
def test_make_run_reads_migrations_only_where_some_are_missing(tmp_path):
    path = tmp_path / "db.sqlite3"
    code = """if True:
        import gc, sys
        from scripts import serve
        gc.disable()
        serve.prepare("127.0.0.1", "8000")
        has_read = "memory.migrations.0001" in str([*sys.modules])
        sys.exit(has_read + 2 * gc.isenabled())
    """
    command = [sys.executable, "-c", code]
    env = {**os.environ, "DATABASE_URL": f"sqlite:///{path}", "DEBUG": "true"}

    def prepare():
        return subprocess.run(command, env=env, cwd=ROOT).returncode

    assert prepare() == 3
    with closing(sqlite3.connect(path)) as database:
        # As after an upgrade of the library that reads names.
        database.execute("UPDATE accounts_namekey SET made_of = 'older'")
        database.commit()
        assert prepare() == 0
        keys = database.execute("SELECT made_of FROM accounts_namekey").fetchall()
        assert keys
        assert ("older",) not in keys
        users = database.execute("SELECT username, is_staff FROM auth_user")
        assert users.fetchall() == [("demo", 1)]


@pytest.mark.server
def test_process_begins_although_its_model_can_not_be_built(tmp_path, new_database):
    file = tmp_path / "providers.toml"
    table = 'name = "x"\nmodel = "no.such_module:make"\n'
    file.write_text(f'[[providers]]\nname = "X"\n[[providers.models]]\n{table}')
    with new_database() as url:
        env = {"DATABASE_URL": url, "PROVIDERS_FILE": str(file), "CHAT_MODEL": "x"}
        with Site(env) as site:
            alice = Person(site, "alice")
            with alice.chat(alice.create()) as chat:
                assert chat.say("Hello")["state"] == "failed"
            assert "no.such_module" in site.log()
            assert "Traceback" not in site.log()


@pytest.mark.database("sqlite")
def test_garbage_is_collected_once_the_server_runs(tmp_path):
    code = """if True:
        import gc
        from scripts import serve
        def report():
            from twisted.internet import reactor
            print(gc.isenabled())
            reactor.stop()
        serve.report = report
        serve.main(["--verbosity", "0", "-b", "127.0.0.1", "-p", "0"])
    """
    env = {**os.environ, "DATABASE_URL": copy_sqlite(tmp_path / "db.sqlite3")}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=env, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert (done.returncode, done.stdout) == (0, "True\n")


@pytest.mark.server
@pytest.mark.database("sqlite")
def test_server_refuses_an_older_database(tmp_path):
    url = copy_sqlite(tmp_path / "db.sqlite3")
    with closing(sqlite3.connect(tmp_path / "db.sqlite3")) as database:
        database.execute("DELETE FROM django_migrations WHERE app = 'retention'")
        database.commit()
    site = Site({"DATABASE_URL": url})
    done = warm_python.run(site.command()[1:], site.environment())
    assert done.returncode == 1
    [sentence] = done.stderr.splitlines()
    assert "it lacks retention.0001_initial. Run manage.py migrate" in sentence


@pytest.mark.parametrize("action", ["connecting", "rejected", "disconnected"])
def test_the_log_of_sockets_keeps_no_query_strings(action):
    stream = io.StringIO()
    details = {"path": "/ws/c/1/?secret-wish", "client": "127.0.0.1:1"}
    AccessLog(stream)("websocket", action, details)
    assert '/ws/c/1/"' in stream.getvalue()
    assert "secret-wish" not in stream.getvalue()


@pytest.mark.parametrize("start", ["/s/", "/%73/", "/accounts/link/"])
def test_log_hides_a_secret_with_escaped_letters(start):
    stream = io.StringIO()
    path = f"{start}%41{'b' * 30}%5F/"
    details = {"path": path, "client": "127.0.0.1:1", "method": "GET"}
    AccessLog(stream)("http", "complete", {**details, "status": 200, "size": 1})
    assert '…/" 200' in stream.getvalue()


def test_a_path_can_not_hide_what_the_log_says():
    stream = io.StringIO()
    details = {"path": "/a\x1b[2Kb", "client": "127.0.0.1:1", "method": "GET"}
    AccessLog(stream)("http", "complete", {**details, "status": 200, "size": 1})
    assert '"GET /a\\x1b[2Kb" 200' in stream.getvalue()
