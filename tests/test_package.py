"""The memory as a package: a wheel, built and used without the repository."""

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile

import pytest

from .servers import ROOT

PARTS = ("memory/agents", "memory/engine", "docs")
# Imports every module, and says what must not be there.
IMPORT_ALL = """\
import importlib, pkgutil, sys
import windowpane_memory
for module in pkgutil.walk_packages(windowpane_memory.__path__, "windowpane_memory."):
    importlib.import_module(module.name)
print(len([name for name in sys.modules if name.startswith("windowpane_memory.")]))
print([name for name in ("memory", "django", "chatsite") if name in sys.modules])
print(importlib.util.find_spec("memory"))
"""


def run(*command, cwd):
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built from a copy, so that nothing is left in the repository."""
    source = tmp_path_factory.mktemp("source")
    for name in PARTS:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, source / name, ignore=ignored)
    for name in ("pyproject.toml", "LICENSE", "memory/__init__.py"):
        shutil.copy(ROOT / name, source / name)
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-index", "--no-deps")
    run(*pip, "--no-build-isolation", "--wheel-dir", "dist", ".", cwd=source)
    (built,) = (source / "dist").iterdir()
    return built


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """Of an environment that has the wheel and, from the one of the tests, packages
    that it depends on, but not the repository."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", "env", cwd=folder)
    python = folder / "env" / "bin" / "python"
    options = ("--quiet", "--no-index", "--no-deps", "--no-compile")
    pip = (sys.executable, "-m", "pip", "--python", str(python), "install", *options)
    run(*pip, str(wheel), cwd=folder)
    (site_packages,) = (folder / "env" / "lib").glob("python*/site-packages")
    others = [path for path in sys.path if path.endswith("site-packages")]
    (site_packages / "others.pth").write_text("\n".join(others))
    return python


def test_it_holds_the_engine_and_the_agents_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    here = {
        re.sub("^memory/", "windowpane_memory/", str(path.relative_to(ROOT)))
        for part in ("memory/agents", "memory/engine")
        for path in (ROOT / part).rglob("*.py")
    }
    assert {name for name in names if ".dist-info/" not in name} == here


def test_it_names_the_versions_that_are_tested(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [n for n in archive.namelist() if n.endswith("/METADATA")]
        metadata = archive.read(name).decode()
    assert "Provides-Extra: agents\n" in metadata
    required = (ROOT / "requirements.txt").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for line in (*project["dependencies"], *project["optional-dependencies"]["agents"]):
        assert line in required or line.startswith("pydantic")


def test_it_is_used_where_nothing_else_is(python):
    loaded, beside, collision = run(
        python, "-I", "-c", IMPORT_ALL, cwd=python.parent
    ).splitlines()
    assert int(loaded) > 30
    assert (beside, collision) == ("[]", "None")


def test_the_documented_example_runs_with_its_name(python):
    page = (ROOT / "docs" / "agents.md").read_text()
    code = re.search(r"<!-- example -->\n```python\n(.+?)```", page, re.DOTALL)[1]
    code = code.replace("from memory.", "from windowpane_memory.")
    code += "\nprint(len(transcript), compacted.last_seq)\n"
    assert run(python, "-I", "-c", code, cwd=python.parent) == "6 2\n"
