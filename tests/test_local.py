"""The script of `make local`, without its packages: a server and a site are faked."""

import os
import re
import runpy
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from chatsite.llm import providers
from chatsite.llm.local import servers

from .servers import ROOT

SCRIPT = ROOT / "scripts" / "local_model.py"
LOCK = (ROOT / "requirements" / "local.lock").read_text()
RUN = """
import runpy, sys, types
made = types.SimpleNamespace(Server=lambda parameters: None)
sys.modules["xllamacpp"] = made
script = runpy.run_path(sys.argv[1])
script["run_site"].__globals__["ROOT"] = script["Path"](sys.argv[2])
sys.exit(script["run_site"]())
"""
SITE = """#!/bin/sh
trap 'echo ended; exit 7' TERM
echo "model $CHAT_MODEL"
while :; do sleep 0.05; done
"""


@pytest.fixture
def script(monkeypatch):
    monkeypatch.setitem(sys.modules, "xllamacpp", SimpleNamespace(Server=object))
    return runpy.run_path(str(SCRIPT))


@pytest.fixture
def site(tmp_path):
    """start(**env) -> the script beside a site that only writes its model."""
    run = tmp_path / "scripts" / "run.sh"
    run.parent.mkdir()
    run.write_text(SITE)
    run.chmod(0o755)
    started = []

    def start(**env):
        command = [sys.executable, "-c", RUN, str(SCRIPT), str(tmp_path)]
        env = {**os.environ, "CHAT_MODEL": "other", "PROVIDERS_FILE": "", **env}
        pipe = subprocess.PIPE
        made = subprocess.Popen(command, env=env, stdout=pipe, text=True)
        started.append(made)
        return made, made.stdout.readline()

    yield start
    for each in started:
        each.terminate()
        each.stdout.close()
        each.wait(10)


def test_model_is_found_and_labelled(script):
    assert servers.SERVERS[script["PORT"]] == script["SERVER"] == servers.SMALL
    name = f"{script['SERVER']}: {script['MODEL']}"
    assert servers.MODEL_ID.fullmatch(script["MODEL"])
    assert providers.name_model(name) == f"{name} (very small, often wrong)"
    assert providers.name_model("Ollama: x") == "Ollama: x"


def test_lock_has_the_two_packages_with_hashes():
    text = (ROOT / "requirements" / "local.txt").read_text()
    wanted = re.findall(r"(?m)^[\w-]+==\S+", text)
    assert re.findall(r"(?m)^[\w-]+==\S+", LOCK) == wanted
    assert all(f"{each} \\\n    --hash=sha256:" in LOCK for each in wanted)


@pytest.mark.parametrize("name", ["local.sh", "run.sh", "setup.sh", "lock.sh"])
def test_shell_script_is_well_formed(name):
    subprocess.run(["sh", "-n", str(ROOT / "scripts" / name)], check=True)


def test_site_has_the_model_as_its_default_and_ends_by_itself(site):
    process, line = site()
    assert line == "model SmolLM2: 135M-Instruct\n"
    # Ctrl+C, which the terminal sends to both; the script waits for the site.
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert process.poll() is None
    process.terminate()
    assert process.stdout.read() == "ended\n"
    assert process.wait(10) == 7


def test_file_of_providers_keeps_its_default(site):
    process, line = site(PROVIDERS_FILE="providers.toml")
    assert line == "model other\n"
    time.sleep(0.3)
    process.terminate()
    assert process.wait(10) == 7
