"""The settings that `make setup` writes for the machine of a developer."""

import os
import re
import shutil
import stat
import subprocess
import sys

import pytest

from . import warm_python
from .databases import copy_sqlite
from .servers import ROOT

CODE = ("chatsite", "memory", "templates", "static", "locale", "vendor")
WRITE_A_MESSAGE = """
from django.contrib.auth import get_user_model
from chatsite.turns import commands
from memory import transcript
made = transcript.create_conversation(get_user_model().objects.create_user("alice"))
commands.submit_message(made, text="Hello", client_id="1")
"""


@pytest.fixture
def clone(tmp_path):
    """A fresh clone whose .venv has everything installed."""
    for name in CODE:
        # With what was compiled, which takes seconds.
        shutil.copytree(ROOT / name, tmp_path / name)
    (tmp_path / "scripts").mkdir()
    (tmp_path / "requirements").mkdir()
    for name in ("manage.py", "requirements/site.lock", "scripts/setup.sh"):
        shutil.copy(ROOT / name, tmp_path / name)
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    stamp = "cksum < requirements/site.lock > .venv/installed-requirements-site.lock"
    subprocess.run(["sh", "-c", stamp], cwd=tmp_path, check=True)
    return tmp_path


def bare(**env):
    """An environment with nothing of the site in it but `env`."""
    found = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return {**found, **env}


def setup(folder, **env):
    done = subprocess.run(
        ["scripts/setup.sh"],
        cwd=folder,
        env=bare(PYTHON=sys.executable, **env),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def manage(folder, *command, **env):
    return warm_python.run([str(folder / "manage.py"), *command], bare(**env))


def test_manage_py_works_after_setup(clone):
    assert manage(clone, "check").stderr.startswith("Set SECRET_KEY and ALLOWED_HOSTS")
    copy_sqlite(clone / "db.sqlite3")
    setup(clone)
    key = re.search(r"(?m)^SECRET_KEY=(\S{60,})$", (clone / ".env").read_text())
    assert key
    assert stat.S_IMODE((clone / ".env").stat().st_mode) == 0o600
    for command in (["migrate", "--verbosity", "0"], ["audit"]):
        done = manage(clone, *command)
        assert done.returncode == 0, done.stderr
    setup(clone)
    assert key[0] in (clone / ".env").read_text()


def test_setup_leaves_an_env_file_as_it_is(clone):
    (clone / ".env").write_text("CHAT_MODEL=mine\n")
    setup(clone)
    assert (clone / ".env").read_text() == "CHAT_MODEL=mine\n"


def test_setup_leaves_the_settings_to_an_environment_that_has_them(clone):
    setup(clone, SECRET_KEY="the-environment-knows")
    assert not (clone / ".env").exists()


def test_rows_from_before_the_env_file_stay_as_they_were_signed(clone):
    copy_sqlite(clone / "db.sqlite3")
    done = manage(clone, "shell", "-v", "0", "-c", WRITE_A_MESSAGE, DEBUG="true")
    assert done.returncode == 0, done.stderr
    setup(clone)
    done = manage(clone, "audit")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_debug_of_an_env_file_does_not_reach_a_server(clone):
    setup(clone)
    code = "from django.conf import settings; print(settings.DEBUG)"
    server = {"SECRET_KEY": "its own", "ALLOWED_HOSTS": "chat.example.org"}
    assert manage(clone, "shell", "-v", "0", "-c", code).stdout.strip() == "True"
    found = manage(clone, "shell", "-v", "0", "-c", code, **server)
    assert found.stdout.strip() == "False", found.stderr


def test_tests_and_their_servers_read_no_env_file():
    assert os.environ["ENV_FILE"] == ""
