"""The fake model provider of the tests, in a process of its own."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def running_provider() -> Iterator[str]:
    """Its base URL, while it runs."""
    command = [sys.executable, "-m", "tests.fakes.upstream", "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield server.stdout.readline().strip().partition("=")[2]
    finally:
        server.kill()
        server.wait()
