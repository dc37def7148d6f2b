"""Runs of pytest by the rules of this suite, on a few tests in their own folder."""

import os
import subprocess
import sys
from pathlib import Path

from .servers import ROOT

# Without the site that the suite is about, and without plugins that load for seconds.
RULES = ("tests.plugin", "xdist.plugin", "pytest_timeout")


def run_python(folder: Path, *command: str, **env: str) -> subprocess.CompletedProcess:
    """`python -m *command` in this folder, which needs no settings for pytest."""
    (folder / "pytest.ini").touch()
    rules = {
        "PYTHONPATH": str(ROOT),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_ADDOPTS": " ".join(f"-p {name}" for name in RULES),
    }
    return subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder,
        env={**os.environ, **rules, **env},
        capture_output=True,
        text=True,
        check=False,
    )
