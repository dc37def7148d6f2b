"""The installation of deploy/ on loopback: two processes of the site behind nginx.

Made of the files that people install. Only ports, folders, the host's name and the
certificate are others than there.
"""

import os
import re
import shlex
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
from pathlib import Path

from tests import warm_python
from tests.servers import ROOT, Server, Site, free_port

DEPLOY = ROOT / "deploy"
NAME = "chat.example.org"
HOST = "localhost"
STATIC = "/var/lib/windowpane/static"
PYTHON = "/opt/windowpane/current/.venv/bin/python"

# Debian's own nginx.conf, with folders that everyone may write to.
MAIN = """
{user}
daemon off;
worker_processes 2;
pid {folder}/nginx.pid;
error_log stderr;
events {{ worker_connections 768; }}
http {{
    sendfile on;
    tcp_nopush on;
    include /etc/nginx/mime.types;
    default_type application/octet-stream;
    gzip on;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/processes.conf;
    include {folder}/site.conf;
}}
"""


def adapt(path, **values):
    """A file of deploy/ with other values; each has to be there."""
    text = (DEPLOY / path).read_text()
    for old, new in values.items():
        assert old in text, f"{path} has no {old!r}"
        text = text.replace(old, new)
    return text


def read_env(path):
    lines = (DEPLOY / path).read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and line[0] != "#")


def commands_of(unit, instance=""):
    """Return the commands of a unit's ExecStart lines, with this Python."""
    found = re.findall(r"(?m)^ExecStart=(.+)$", (DEPLOY / "systemd" / unit).read_text())
    commands = [shlex.split(line.replace("%i", instance)) for line in found]
    assert all(command[0] == PYTHON for command in commands)
    return [[sys.executable, *command[1:]] for command in commands]


def make_certificate(folder):
    """A certificate for HOST, which the tests' client trusts."""
    subject = ["-subj", f"/CN={HOST}", "-addext", f"subjectAltName=DNS:{HOST}"]
    files = ["-keyout", f"{folder}/privkey.pem", "-out", f"{folder}/fullchain.pem"]
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    subprocess.run(
        ["openssl", "req", "-x509", *key, "-days", "2", *subject, *files],
        check=True,
        capture_output=True,
    )


class Nginx(Server):
    """nginx from the system's packages with the configuration of deploy/nginx."""

    name = "nginx"

    def __init__(self, upstreams, static):
        super().__init__()
        self.upstreams, self.static = upstreams, static
        self.http_port = free_port()

    @property
    def url(self):
        return f"https://{HOST}:{self.port}"

    @property
    def access_log(self):
        return (self.folder / "windowpane.access.log").read_text()

    def prepare(self):
        if (self.folder / "nginx.conf").exists():
            return
        make_certificate(self.folder)
        (self.folder / "site.conf").write_text(self._site())
        (self.folder / "processes.conf").write_text(self._processes())
        user = "user root;" if os.geteuid() == 0 else ""
        main = MAIN.format(user=user, folder=self.folder)
        (self.folder / "nginx.conf").write_text(main)
        self.tls = ssl.create_default_context(cafile=self.folder / "fullchain.pem")

    def _site(self):
        text = adapt(
            "nginx/windowpane.conf",
            **{
                f"/etc/letsencrypt/live/{NAME}": str(self.folder),
                "/var/log/nginx": str(self.folder),
                "/var/www/html": str(self.folder),
                STATIC: str(self.static),
                "listen 80": f"listen 127.0.0.1:{self.http_port}",
                "listen 443": f"listen 127.0.0.1:{self.port}",
                NAME: HOST,
            },
        )
        return re.sub(r"(?m)^ *listen \[::\]:.+\n", "", text)

    def _processes(self):
        first, second = self.upstreams
        ports = {"127.0.0.1:8001": f"127.0.0.1:{first}"}
        ports["127.0.0.1:8002"] = f"127.0.0.1:{second}"
        return adapt("nginx/processes.conf", **ports)

    def command(self):
        path = f"{os.environ.get('PATH', '')}:/usr/sbin"
        program = shutil.which("nginx", path=path)
        if not program:
            raise RuntimeError("nginx not found: install it (make test does).")
        return [program, "-p", str(self.folder), "-c", str(self.folder / "nginx.conf")]

    def is_ready(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True


class Process(Site):
    """One windowpane@PORT.service."""

    def command(self):
        return commands_of("windowpane@.service", str(self.port))[0]

    def launch(self):
        super().launch()
        self.is_warm = True


class Installation:
    """Behaves like a Site whose address is nginx's."""

    def __init__(self, **env):
        self.static = tempfile.mkdtemp(prefix="static-")
        ports = [free_port(), free_port()]
        self.nginx = Nginx(ports, self.static)
        settings = self._settings(env)
        self.processes = [Process(settings, port) for port in ports]
        # Its Python is started as the unit does it, but only once: to fork the others
        # takes two seconds of a processor less.
        self.processes[0].is_warm = False

    def _settings(self, env):
        example = read_env("windowpane.env.example")
        hosts = example["ALLOWED_HOSTS"].replace(NAME, HOST)
        others = {"DEBUG": "false", "SITE_HTTPS": "true", "SITE_ORIGINS": self.url}
        secret = {"SECRET_KEY": os.urandom(40).hex(), "ALLOWED_HOSTS": hosts}
        return {**example, **secret, **others, "STATIC_ROOT": self.static, **env}

    @property
    def url(self):
        return self.nginx.url

    @property
    def socket_url(self):
        return self.url.replace("https", "wss")

    @property
    def tls(self):
        return self.nginx.tls

    def manage(self, *args):
        return self.processes[0].manage(*args)

    def release(self):
        """Do the work of windowpane-release.service, all at once to save time."""
        environment = self.processes[0].environment()
        commands = commands_of("windowpane-release.service")
        with tempfile.TemporaryFile() as log:
            running = [
                warm_python.start(arguments, environment, log, log)
                for _python, *arguments in commands
            ]
            codes = [process.wait() for process in running]
            log.seek(0)
            assert codes == [0] * len(commands), log.read().decode()

    def __enter__(self):
        self.release()
        self.nginx.launch()
        for process in self.processes:
            process.launch()
        for server in (*self.processes, self.nginx):
            server.wait_until_ready()
        return self

    def __exit__(self, *exc_info):
        for server in (self.nginx, *self.processes):
            server.stop(show_log=exc_info[0] is not None)
        shutil.rmtree(self.static, ignore_errors=True)


def read_fields(path: Path):
    """{section: [(name, value)]} of a unit file."""
    fields, section = {}, ""
    for line in path.read_text().splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif line and not line.startswith("#"):
            name, _, value = line.partition("=")
            fields.setdefault(section, []).append((name, value))
    return fields
