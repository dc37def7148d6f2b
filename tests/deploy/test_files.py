"""The files of deploy/ against what they describe: settings, flags and each other."""

import re
import shlex
import subprocess
import sys

import pytest
import yaml

from chatsite.llm import providers
from chatsite.ops import checks
from chatsite.settings import env
from scripts import serve
from tests.servers import ROOT

from .installation import DEPLOY, PYTHON, commands_of, read_env, read_fields

UNITS = sorted((DEPLOY / "systemd").iterdir())
SERVICES = [path for path in UNITS if path.suffix == ".service"]
NGINX = (DEPLOY / "nginx" / "windowpane.conf").read_text()


def compose():
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())


def flag(name):
    (value,) = [f.partition("=")[2] for f in serve.FLAGS if f.startswith(f"--{name}=")]
    return int(value)


def seconds(directive):
    return {int(n) for n in re.findall(rf"{directive} (\d+)s;", NGINX)}


def names_of_settings():
    return {*env.settings}


def test_every_variable_of_the_example_is_a_setting():
    assert set(read_env("windowpane.env.example")) <= names_of_settings()


def test_the_example_has_no_secret_and_nothing_that_shells_read_otherwise():
    values = read_env("windowpane.env.example")
    assert not values["SECRET_KEY"]
    assert not values["OPENAI_API_KEY"]
    assert not values["METRICS_TOKEN"]
    assert not re.search(r"[$'\"\\#]", "".join(values.values()))


def test_the_example_without_a_key_makes_a_site_that_answers(settings):
    values = read_env("windowpane.env.example")
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "CHAT_MODEL"):
        setattr(settings, name, values[name])
    assert not list(checks.check_models())
    assert providers.is_demo(providers.default_model())


def test_the_command_for_operators_reads_settings_as_they_are(tmp_path):
    lines = ["# A=1", "SYSTEM_PROMPT=Be kind; say a=b", "", "A_B='x'", "broken"]
    (tmp_path / "windowpane.env").write_text("\n".join(lines) + "\n")
    script = (DEPLOY / "windowpane-manage").read_text()
    for old, new in {
        "/etc/windowpane": str(tmp_path),
        "/opt/windowpane/current": str(tmp_path),
        "runuser -u windowpane -- .venv/bin/python manage.py": "env",
    }.items():
        assert old in script
        script = script.replace(old, new)
    command = ["sh", "-c", script, "windowpane-manage", "X=y z"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={})
    found = done.stdout.splitlines()
    assert {"SYSTEM_PROMPT=Be kind; say a=b", "A_B='x'", "X=y z"} <= set(found)
    assert not any(line.startswith(("A=", "broken")) for line in found)


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_systemd_accepts_the_unit(path, tmp_path):
    # Its own copy of all, since the target and the timer name the others.
    for each in UNITS:
        text = each.read_text().replace(PYTHON, sys.executable)
        (tmp_path / each.name).write_text(text)
    name = path.name.replace("@.", "@8001.")
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(tmp_path / name)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_services_are_shut_in():
    hardening = None
    for path in SERVICES:
        fields = dict(read_fields(path)["Service"])
        assert fields["User"] == fields["Group"] == "windowpane"
        text = path.read_text()
        (own,) = re.findall(r"(?s)# Nothing may be written.+?(?=\n\n|\Z)", text)
        hardening = hardening or own.strip()
        assert own.strip() == hardening
    for line in ("NoNewPrivileges=yes", "ProtectSystem=strict", "PrivateTmp=yes"):
        assert line in hardening.splitlines()


def test_a_process_has_time_to_hand_its_turns_back():
    fields = dict(read_fields(DEPLOY / "systemd" / "windowpane@.service")["Service"])
    assert fields["KillSignal"] == "SIGTERM"
    # Tests elsewhere hold the site to 10 s.
    assert int(fields["TimeoutStopSec"]) > 10
    assert fields["Restart"] == "always"
    for name in ("web-1", "web-2"):
        assert compose()["services"][name]["stop_grace_period"] == "20s"


def test_every_way_runs_the_site_by_serve_py():
    unit = commands_of("windowpane@.service", "8001")[0][1:]
    assert unit == shlex.split("scripts/serve.py --verbosity 0 -b 127.0.0.1 -p 8001")
    image = (DEPLOY / "Dockerfile").read_text()
    assert '"scripts/serve.py", "--verbosity", "0", "-b", "0.0.0.0"' in image


def test_nginx_waits_longer_than_the_site():
    longest = max(flag("ping-interval") + flag("ping-timeout"), flag("http-timeout"))
    for directive in ("proxy_read_timeout", "proxy_send_timeout"):
        assert min(seconds(directive)) > longest


def test_the_image_has_what_it_copies_and_what_serves():
    image = (DEPLOY / "Dockerfile").read_text()
    sources = [line.split()[1] for line in image.splitlines() if line[:4] == "COPY"]
    assert all((ROOT / source).exists() for source in sources)
    wanted = {"chatsite", "locale", "memory", "static", "templates", "manage.py"}
    wanted |= {"vendor/inter", "vendor/mermaid"}
    # chatsite/release.py reads the last one.
    assert wanted | {"requirements/site.lock", "pyproject.toml"} <= set(sources)
    let_in = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    assert {f"!{source}" for source in sources} <= set(let_in)


def test_the_containers_fit_the_files_beside_them():
    services = compose()["services"]
    assert set(services) == {"postgres", "redis", "release", "web-1", "web-2", "nginx"}
    for name in ("release", "web-1", "web-2"):
        assert set(services[name]["environment"]) <= names_of_settings()
    addresses = {
        services[name]["networks"]["inside"]["ipv4_address"]
        for name in ("web-1", "web-2")
    }
    known = dict(host.split(":", 1) for host in services["nginx"]["extra_hosts"])
    assert set(known.values()) == addresses
    upstream = (DEPLOY / "nginx" / "processes-compose.conf").read_text()
    assert set(re.findall(r"server ([\w-]+):8000 ", upstream)) == set(known)
    asked = re.findall(r"\$\{(\w+):", (DEPLOY / "compose.yaml").read_text())
    assert set(asked) == set(read_env("compose.env.example"))
    mounted = [volume.split(":")[0] for volume in services["nginx"]["volumes"][:2]]
    assert all((DEPLOY / path).exists() for path in mounted)


def test_the_release_service_of_both_does_the_same():
    commands = [c[1:] for c in commands_of("windowpane-release.service")]
    (_, _, script) = compose()["services"]["release"]["command"]
    assert [" ".join(c) for c in commands[1:]] == re.findall(
        r"\.venv/bin/python (.+?)(?: &&|$)", script
    )
