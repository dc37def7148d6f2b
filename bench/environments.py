"""Environments beside the site's own, for what other projects bring to a bench."""

import subprocess
import sys
import tarfile
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


def download(python: Path, name: str, version: str, folder: Path) -> Path:
    """A package's source from PyPI, unpacked below the folder."""
    pip = (str(python), "-m", "pip", "download", "--quiet", "--no-deps")
    wanted = f"{name}=={version}"
    run(*pip, "--no-binary", name, "--dest", str(folder), wanted)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    return folder / f"{name}-{version}"


def run(*command: str) -> None:
    subprocess.run(command, check=True)
