"""Environments beside the site's own, for what other projects bring to a bench."""

import subprocess
import sys
from pathlib import Path


def make(folder: Path, requirements: Path) -> Path:
    """The Python of an environment with these versions, made once."""
    python, stamp = folder / "bin" / "python", folder / "installed"
    wanted = requirements.read_text()
    if not stamp.exists() or stamp.read_text() != wanted:
        run(sys.executable, "-m", "venv", str(folder))
        pip = (str(python), "-m", "pip", "install", "--quiet")
        # An old pip needs many minutes to resolve the ranges.
        run(*pip, "--upgrade", "pip")
        run(*pip, "--requirement", str(requirements))
        stamp.write_text(wanted)
    return python


def run(*command: str) -> None:
    subprocess.run(command, check=True)
