"""The fake model provider of the tests, in a process of its own."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def running_provider(module: str = "") -> Iterator[str]:
    """Yield its base URL while it runs; `module` has a provider of a bench's own."""
    program = [module] if module else ["tests.fakes.upstream", "--port", "0"]
    command = [sys.executable, "-m", *program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            yield server.stdout.readline().strip().partition("=")[2]
        finally:
            server.kill()
