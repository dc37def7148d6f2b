"""Real servers for tests: Redis and the site itself under daphne. PostgreSQL is in
databases.py.

Each is a context manager with its own temporary folder and a free port, is stopped by
its process id, and writes its log where a failing test shows it.
"""

import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import IO, Self

from . import warm_python
from .patience import PATIENCE
from .warm_python import WarmProcess

ROOT = Path(__file__).resolve().parent.parent
START_TIMEOUT = 30.0 * PATIENCE
STOP_TIMEOUT = 15.0 * PATIENCE
LOG_TAIL = 6_000


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def answers(url: str) -> bool:
    """Return whether a server answers well."""
    try:
        with urllib.request.urlopen(url, timeout=2) as response:
            return response.status == 200
    except (urllib.error.URLError, OSError):
        return False


class Server:
    """One process: start, stop, and the signals that tests of faults send."""

    name = "server"
    # The signal for a regular end.
    stop_signal = signal.SIGTERM
    # Seconds until it is ready.
    start_timeout = START_TIMEOUT
    # Where it runs.
    root = ROOT

    def __init__(self, port: int | None = None) -> None:
        self.port = port or free_port()
        self.process: subprocess.Popen | WarmProcess | None = None
        self.folder = Path(tempfile.mkdtemp(prefix=f"{self.name}-"))

    @property
    def log_path(self) -> Path:
        return self.folder / "server.log"

    def command(self) -> list[str]:
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        return dict(os.environ)

    def is_ready(self) -> bool:
        raise NotImplementedError

    def prepare(self) -> None:
        """Whatever has to be there before the first start."""

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def start(self) -> Self:
        if not self.is_running:
            self.launch()
            self.wait_until_ready()
        return self

    def launch(self) -> None:
        """Start the process and do not wait: several can get ready side by side."""
        if not self.is_running:
            self.prepare()
            with self.log_path.open("ab") as log:
                self.process = self.spawn(self.command(), log)

    def spawn(self, command: list[str], log: IO[bytes]) -> subprocess.Popen:
        return subprocess.Popen(
            command,
            cwd=self.root,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )

    def wait_until_ready(self) -> None:
        end = time.monotonic() + self.start_timeout
        while not self.is_ready():
            if not self.is_running:
                raise RuntimeError(f"{self.name} ended at once:\n{self.log()}")
            if time.monotonic() > end:
                self.kill()
                raise RuntimeError(f"{self.name} did not get ready:\n{self.log()}")
            time.sleep(0.05)

    def log(self) -> str:
        if not self.log_path.exists():
            return ""
        return self.log_path.read_text(errors="replace")[-LOG_TAIL:]

    def show_log(self) -> None:
        """Inside a test pytest shows this only when it failed."""
        sys.stdout.write(f"--- {self.name} {self.port} ---\n{self.log()}\n")

    def send(self, number: signal.Signals) -> None:
        """A signal to the process, such as SIGSTOP and SIGCONT to freeze it."""
        self.process.send_signal(number)

    def kill(self) -> None:
        """Like a power cut for the process: SIGKILL."""
        if self.process:
            self.process.kill()
            self.process.wait()

    def terminate(self) -> int:
        """Ask it to end and wait; the exit code."""
        self.process.send_signal(self.stop_signal)
        return self.process.wait(STOP_TIMEOUT)

    def restart(self) -> None:
        """Start again on the same port with the same data; kill() may come before."""
        if self.is_running:
            self.terminate()
        self.start()

    def stop(self, *, show_log: bool = True) -> None:
        if self.is_running:
            # A frozen process would not notice the signal.
            self.send(signal.SIGCONT)
            try:
                self.terminate()
            except subprocess.TimeoutExpired:
                self.kill()
        if show_log:
            self.show_log()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, *exc_info: object) -> None:
        self.stop(show_log=kind is not None)


class Redis(Server):
    """A Redis server that writes nothing to disk."""

    name = "redis"

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def command(self) -> list[str]:
        options = ["--bind", "127.0.0.1", "--port", str(self.port)]
        options += ["--save", "", "--appendonly", "no", "--dir", str(self.folder)]
        return ["redis-server", *options]

    def is_ready(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(16).startswith(b"+PONG")
        except OSError:
            return False


class Site(Server):
    """The site under daphne, as a process of its own with its own environment."""

    name = "daphne"
    # Forked by a process that has imported everything, instead of started.
    is_warm = True
    # By what a client believes its certificate; None: it has none.
    tls: ssl.SSLContext | None = None

    def __init__(self, env: dict[str, str], port: int | None = None) -> None:
        super().__init__(port)
        self.env = env

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def socket_url(self) -> str:
        return f"ws://127.0.0.1:{self.port}"

    def environment(self) -> dict[str, str]:
        return {
            "EXTRAS": "all",
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "chatsite.settings",
            "ENV_FILE": "",
            "SITE_ORIGINS": self.url,
            **self.env,
        }

    def command(self) -> list[str]:
        # Without a line for every request, which would fill the log that is shown.
        address = ["--verbosity", "0", "-b", "127.0.0.1", "-p", str(self.port)]
        return [sys.executable, str(ROOT / "scripts" / "serve.py"), *address]

    def is_ready(self) -> bool:
        return answers(f"{self.url}/healthz")

    def spawn(
        self, command: list[str], log: IO[bytes]
    ) -> subprocess.Popen | WarmProcess:
        env = self.environment()
        if not self.is_warm or "LD_PRELOAD" in env:
            return super().spawn(command, log)
        return warm_python.start(command[1:], env, log, log)

    def manage(self, *args: str) -> str:
        """Run manage.py in the environment of this server; its output."""
        command = [str(ROOT / "manage.py"), *args]
        done = warm_python.run(command, self.environment())
        if done.returncode:
            raise RuntimeError(f"manage.py {args} failed:\n{done.stdout}{done.stderr}")
        return done.stdout


class PlainSite(Site):
    """The site under daphne as it comes, without the flags of scripts/serve.py."""

    def command(self) -> list[str]:
        address = ["--verbosity", "0", "-b", "127.0.0.1", "-p", str(self.port)]
        return [sys.executable, "-m", "daphne", *address, "chatsite.asgi:application"]


def find_chromium() -> str:
    """The path of the browser that the system has; the one that can do without a
    screen takes a third less time."""
    names = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"]
    if found := next(filter(None, map(shutil.which, names)), None):
        return found
    raise RuntimeError("No Chromium found: install chromium (make test does).")
