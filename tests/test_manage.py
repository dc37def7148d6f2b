"""manage.py as a program among others."""

import os
import subprocess
import sys

from .servers import ROOT


def test_a_reader_who_has_enough_ends_a_command_without_a_word():
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "manage.py"), "help"],
        env={**os.environ, "DEBUG": "true", "ENV_FILE": ""},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.close()
    with process.stderr as errors:
        assert errors.read() == b""
    assert process.wait() == 1
