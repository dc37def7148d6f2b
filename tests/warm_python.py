"""Python processes that need not import anything that this project only uses, nor what
it has without Django.

Importing takes three quarters of the time in which the site starts, and tests start it
more than a hundred times. One process imports it all and forks for each program that a
test wants to run. Such a program is a process like any other: it has its own settings,
arguments and log, and gets its own signals.

What it can't have is what Python reads before it runs: LD_PRELOAD and PYTHON….
"""

import atexit
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parent.parent
# Without what reads settings or starts an event loop when it is imported.
IMPORTED = (
    *("django.core.management", "django.core.handlers.asgi", "django.views.generic"),
    *("django.contrib.auth.hashers", "django.contrib.staticfiles.finders"),
    *("django.db.migrations.executor", "channels.routing", "channels.layers"),
    *("channels.generic.websocket", "channels_redis.pubsub", "psycopg_pool", "nh3"),
    *("environ", "csp.constants", "whitenoise.middleware", "markdown_it", "argon2"),
    *("prometheus_client", "langchain_core.language_models", "langchain_openai"),
    *("twisted.internet.asyncioreactor", "twisted.web.http", "twisted.internet.ssl"),
    *("twisted.internet.endpoints", "autobahn.twisted.websocket"),
)
# With all its modules: it knows no settings, and compiles a hundred patterns.
PURE = "memory.engine"
REQUEST_BYTES = 200_000
RECORD = 16


class WarmProcess:
    """A program that was started warm, with the methods of subprocess.Popen."""

    def __init__(self, status: int) -> None:
        # First the number of the process, then its exit code once it has ended.
        self.status = status
        self.pid = int(os.read(status, RECORD))
        self.returncode: int | None = None

    def poll(self) -> int | None:
        return self._read(0)

    def wait(self, timeout: float | None = None) -> int:
        if self._read(timeout) is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
        return self.returncode

    def _read(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self.status], [], [], timeout)[0]:
            self.returncode = int(os.read(self.status, RECORD))
            os.close(self.status)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def start(
    command: list[str], env: dict[str, str], output: IO[bytes], errors: IO[bytes]
) -> WarmProcess:
    """Run `python *command` in the folder of the project."""
    request = json.dumps({"command": command, "env": env}).encode()
    status, its_status = os.pipe()
    files = [output.fileno(), errors.fileno(), its_status]
    socket.send_fds(_parent(), [request], files)
    os.close(its_status)
    return WarmProcess(status)


def run(command: list[str], env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run `python *command` to its end, with its output as text."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        code = start(command, env, output, errors).wait()
        for file in (output, errors):
            file.seek(0)
        found, wrong = output.read().decode(), errors.read().decode()
    return subprocess.CompletedProcess(command, code, found, wrong)


@cache
def _parent() -> socket.socket:
    """The process that has imported everything; it ends with this one."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, "-m", __name__, str(its.fileno())]
    process = subprocess.Popen(command, cwd=ROOT, pass_fds=[its.fileno()])
    its.close()

    @atexit.register
    def end() -> None:
        ours.close()
        process.wait()

    return ours


def main() -> None:
    gc.disable()
    for name in IMPORTED:
        importlib.import_module(name)
    engine = importlib.import_module(PURE)
    for module in pkgutil.walk_packages(engine.__path__, f"{PURE}."):
        importlib.import_module(module.name)
    gc.collect()
    gc.freeze()
    gc.enable()
    if arguments := serve(socket.socket(fileno=int(sys.argv[1]))):
        run_program(arguments)


def serve(requests: socket.socket) -> list[str] | None:
    """Fork for each request. In the process of the program: its arguments."""
    # No children that have ended and are still in the list of processes.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        data, descriptors, _, _ = socket.recv_fds(requests, REQUEST_BYTES, 3)
        if not data:
            return None
        if os.fork() == 0:
            return fork_program(json.loads(data), *descriptors)
        for each in descriptors:
            os.close(each)


def fork_program(
    request: dict[str, object], output: int, errors: int, status: int
) -> list[str]:
    """A process that waits for the program to end, and the program itself."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if pid := os.fork():
        os.write(status, f"{pid:{RECORD}}".encode())
        _, code = os.waitpid(pid, 0)
        os.write(status, f"{os.waitstatus_to_exitcode(code):{RECORD}}".encode())
        os._exit(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, descriptor in enumerate((nothing, output, errors)):
        os.dup2(descriptor, number)
    os.closerange(3, 1_000)
    os.environ.clear()
    os.environ.update(request["env"])
    return request["command"]


def run_program(arguments: list[str]) -> None:
    """Run `python *arguments`."""
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        program = Path(arguments[0]).resolve()
        if ROOT not in program.parents:
            # A copy of the project has modules of its own.
            package = PURE.partition(".")[0]
            for name in [*sys.modules]:
                if name.partition(".")[0] == package:
                    del sys.modules[name]
        sys.path[0] = str(program.parent)
        runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main()
