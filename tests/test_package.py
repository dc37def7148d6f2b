"""The memory as a package: a wheel, built and used without the repository."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import langchain
import pytest
from packaging.requirements import Requirement

from .servers import ROOT

PARTS = ("memory/agents", "memory/engine", "deploy/package")
README = (ROOT / "deploy" / "package" / "README.md").read_text()
PROGRAM = re.compile(r"```python\n(.+?)```(?:\n\n```text\n(.+?)```)?", re.DOTALL)
PROGRAMS = PROGRAM.findall(README)
INSTALL = re.compile(r"(?:pip3?|pipx|uv add|uv pip)\b[^\n`;,]*?\binstall ([^\n`;,]+)")
# Options and files, and with a name ours alone.
OURS = re.compile(
    r"(?:-\S+ |\S*requirements\S*\s?|[\"']?\.(?:\[agents\])?[\"']?\s?"
    r"|windowpane-memory\S*|\S+\.whl\S*)+"
)
# The page of the agents has these, and lines that take the place of others.
PAGE = (ROOT / "memory" / "agents" / "README.md").read_text()
PAGE_PROGRAMS = re.findall(r"```python\n(.+?)```", PAGE, re.DOTALL)
PAGE_IMPORTS = re.findall(r"^\+(from \S+ import .+)$", PAGE, re.MULTILINE)
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
    for name in ("pyproject.toml", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-index", "--no-deps")
    run(*pip, "--no-build-isolation", "--wheel-dir", "dist", ".", cwd=source)
    (built,) = (source / "dist").iterdir()
    return built


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """Return a Python that has the packages of the tests, but not the repository.

    Into it, pip installs the wheel with its extra: it finds what that depends on.
    """
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", "env", cwd=folder)
    python = folder / "env" / "bin" / "python"
    (site_packages,) = (folder / "env" / "lib").glob("python*/site-packages")
    others = [path for path in sys.path if path.endswith("site-packages")]
    (site_packages / "others.pth").write_text("\n".join(others))
    pip = (sys.executable, "-m", "pip", "--python", str(python), "install")
    run(*pip, "--quiet", "--no-index", "--no-compile", f"{wheel}[agents]", cwd=folder)
    return python


def relative(path):
    return path.relative_to(ROOT)


def test_wheel_holds_the_engine_and_the_agents_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    here = {
        re.sub("^(memory|deploy/package)/", "windowpane_memory/", str(path))
        for part in PARTS
        for path in map(relative, (ROOT / part).rglob("*.py"))
    }
    here |= {"windowpane_memory/py.typed", "windowpane_memory/engine/search/words.txt"}
    assert {name for name in names if ".dist-info/" not in name} == here


def test_metadata_names_the_tested_versions(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [n for n in archive.namelist() if n.endswith("/METADATA")]
        metadata = archive.read(name).decode()
    assert "Provides-Extra: agents\n" in metadata
    required = (ROOT / "requirements.txt").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for line in (*project["dependencies"], *project["optional-dependencies"]["agents"]):
        assert line in required or line.startswith("pydantic")


def test_wheel_is_all_that_pip_installs_beside_this_langchain(python):
    """Versions that are installed are not replaced, and none is missing."""
    (site_packages,) = (python.parents[1] / "lib").glob("python*/site-packages")
    own = {path.name.partition("-")[0] for path in site_packages.glob("*.dist-info")}
    assert own == {"windowpane_memory"}
    code = "from importlib.metadata import version; print(version('langchain'))"
    assert (
        run(python, "-I", "-c", code, cwd=python.parent).strip()
        == langchain.__version__
    )


def test_ranges_of_the_wheel_hold_the_locked_langchain():
    locked = (ROOT / "requirements" / "tests.lock").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = [*project["dependencies"], *project["optional-dependencies"]["agents"]]
    for needed in map(Requirement, lines):
        (version,) = re.findall(rf"^{needed.name}==(\S+)", locked, re.MULTILINE)
        assert version in needed.specifier
        if needed.name.startswith("langchain"):
            # A later minor version is not tested, so it is not promised.
            assert f"{version.rpartition('.')[0]}.9999" in needed.specifier
            assert "2.0" not in needed.specifier


def test_oldest_versions_that_are_tested_are_the_lowest_of_the_ranges():
    pinned = (ROOT / "requirements" / "oldest.txt").read_text()
    oldest = dict(re.findall(r"^(\S+)==(\S+)$", pinned, re.MULTILINE))
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines += [*project["dependencies"], *project["optional-dependencies"]["agents"]]
    lowest = dict(
        re.findall(r"^(langchain\S*|pydantic)>=([\d.]+)", "\n".join(lines), re.M)
    )
    assert len(lowest) == 4
    assert {name: f"{version}.0" for name, version in lowest.items()} == oldest


def test_install_lines_name_files_and_the_own_distribution_only():
    """A name of the package index that is not ours would install foreign code."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True)
    lines = [
        line.strip("`'\"")
        for name in listed.stdout.decode().splitlines()
        if Path(name).suffix in (".md", ".py", ".example", "")
        and not name.startswith(("tests/", "bench/", "scripts/"))
        for text in [(ROOT / name).read_text(errors="replace")]
        for line in INSTALL.findall(text)
    ]
    assert len(lines) > 10
    assert [line for line in lines if not OURS.fullmatch(line)] == []


def test_package_works_without_its_extras(python):
    loaded, beside, collision = run(
        python, "-I", "-c", IMPORT_ALL, cwd=python.parent
    ).splitlines()
    assert int(loaded) > 30
    assert (beside, collision) == ("[]", "None")


def test_the_readme_has_programs():
    assert len(PROGRAMS) == README.count("```python") >= 6
    assert all(shown for _, shown in PROGRAMS)


# Each program in a process of its own, forked by one that has imported LangChain: this
# takes a second of a processor. What was printed comes as a list.
RUN_EACH = """\
import json, os, sys
import langchain_core.language_models, langchain_core.messages
programs = json.load(sys.stdin)
for number, code in enumerate(programs):
    os.mkdir(str(number))
    if os.fork() == 0:
        os.chdir(str(number))
        sys.stdout = open("printed", "w")
        exec(compile(code, "page", "exec"), {"__name__": "__main__"})
        sys.exit()
    _, status = os.wait()
    assert status == 0, code
json.dump([open(f"{n}/printed").read() for n in range(len(programs))], sys.stdout)
"""


def run_each(python, codes, folder):
    """Return what each of these programs prints."""
    done = subprocess.run(
        [python, "-I", "-W", "ignore", "-c", RUN_EACH],
        cwd=folder,
        input=json.dumps(codes),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_each_program_of_the_readme_runs_as_it_is(python, tmp_path):
    codes, shown = zip(*PROGRAMS, strict=True)
    assert run_each(python, codes, tmp_path) == [*shown]


def test_each_program_of_the_page_runs_as_it_is(python, tmp_path):
    assert len(PAGE_PROGRAMS) == PAGE.count("```python") >= 9
    assert len(PAGE_IMPORTS) == PAGE.count("```diff") == 2
    run_each(python, [*PAGE_PROGRAMS, *PAGE_IMPORTS], tmp_path)


STRICT = """
import logging
from windowpane_memory.agents.langmem import RunningSummary

logging.disable()
written = JsonPlusSerializer().dumps_typed(RunningSummary("They met.", {"1"}, "1"))
for serde in (JsonPlusSerializer(), checkpointer.serde):
    print(type(serde.loads_typed(written)).__name__)
"""


def test_page_names_the_class_that_strict_msgpack_reads(python, tmp_path):
    (allowed,) = [each for each in PAGE_PROGRAMS if "allowed_msgpack" in each]
    strict = "import os\nos.environ['LANGGRAPH_STRICT_MSGPACK'] = 'true'\n"
    options = ("-I", "-W", "ignore", "-c")
    shown = run(python, *options, strict + allowed + STRICT, cwd=tmp_path)
    assert shown.split() == ["dict", "RunningSummary"]


def test_package_root_has_the_public_names(python, tmp_path):
    code = """
import windowpane_memory as package
for name in package.__all__:
    assert getattr(package, name) is not None, name
assert set(package.__all__) <= set(dir(package))
assert {*package._PLACES, "__version__"} == set(package.__all__)
assert not hasattr(package, "missing")
print(package.__version__)
from importlib.metadata import version
assert version("windowpane-memory") == package.__version__
"""
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*\n", run(python, "-c", code, cwd=tmp_path))


def test_package_loads_little_until_it_is_used(python, tmp_path):
    code = """
import sys, time
start = time.process_time()
import windowpane_memory
spent = time.process_time() - start
heavy = [n for n in sys.modules if n.split(".")[0] in ("langchain", "langchain_core")]
print(int(spent * 1000), heavy)
windowpane_memory.Policy(trigger=("messages", 4))
print([n for n in sys.modules if n.split(".")[0] in ("langchain", "langgraph")])
"""
    first, second = run(python, "-I", "-c", code, cwd=tmp_path).splitlines()
    milliseconds, heavy = first.split(maxsplit=1)
    assert (heavy, second) == ("[]", "[]")
    assert int(milliseconds) < 300


def test_functions_name_their_keywords(python, tmp_path):
    code = """
import inspect
from importlib import import_module
import windowpane_memory as package
agents = ("langchain", "deepagents", "langmem")
modules = [package, *(import_module(f"windowpane_memory.agents.{n}") for n in agents)]
found = set()
for module in modules:
    for name in getattr(module, "__all__", ["SummarizationMiddleware"]):
        value = getattr(module, name)
        if getattr(value, "_is_protocol", False):
            continue
        function = value.__init__ if isinstance(value, type) else value
        # Errors and the forms of a state have a constructor of Python's.
        module_of = getattr(function, "__module__", None) or ""
        is_own = module_of.startswith("windowpane_memory")
        if not inspect.isfunction(function) or "Error" in name or not is_own:
            continue
        kinds = [each.kind for each in inspect.signature(function).parameters.values()]
        if inspect.Parameter.VAR_KEYWORD in kinds:
            found.add(name)
print(sorted(found))
"""
    # Those of a policy are its fields, which type checkers read.
    assert run(python, "-I", "-c", code, cwd=tmp_path) == "['Policy']\n"


USES = """
from typing import assert_type

from langchain_core.language_models.fake_chat_models import FakeListChatModel
from windowpane_memory import (
    Policy, PolicyError, SQLiteStore, SummaryWarning, ThreadMemory, build_context,
    WindowpaneMiddleware, __version__, count_tokens, load_memory, summarize, thread_key,
)
from windowpane_memory.agents import deepagents, langchain, langmem

model = FakeListChatModel(responses=["Hello."])
policy = Policy(trigger=("messages", 4), keep=("messages", 2), important=["tea"])
errors: list[Exception] = []
with WindowpaneMiddleware(
    model, policy=policy, store=SQLiteStore("x"), on_failure=errors.append
) as memory:
    assert_type(memory, WindowpaneMiddleware)
    assert_type(memory.memory("1"), ThreadMemory)
assert_type(load_memory({"messages": []}), ThreadMemory)
assert_type(__version__, str)
assert_type(thread_key("1"), str)
assert_type(count_tokens([]), int)
build_context(policy, context_window=8000)
summarize(model.with_retry(), policy, on_failure=errors.append)
langchain.SummarizationMiddleware(model, trigger=("tokens", 4000), backoff=1.0)
result = langmem.summarize_messages(
    [], running_summary=None, model=model, max_tokens=300
)
assert_type(result, langmem.SummarizationResult)
assert_type(PolicyError("no").__cause__, BaseException | None)
assert_type(isinstance(SummaryWarning(), UserWarning), bool)
"""
MISTAKES = """
Policy(triger=("messages", 4))
WindowpaneMiddleware(model, triger=("messages", 4))
langchain.SummarizationMiddleware(model, triger=("messages", 4))
deepagents.SummarizationMiddleware(model, backend=1)
langmem.summarize_messages([], running_summary=None, model=model, max_token=300)
thread_key("1") + 1
"""


def test_a_strict_type_checker_knows_its_names(python, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(USES + MISTAKES)
    # What it knows of LangChain stays from run to run, and is three quarters of it.
    cache = ("--cache-dir", str(ROOT / ".pytest_cache" / "mypy"))
    options = ("--strict", "--no-color-output", *cache)
    command = (python, "-m", "mypy", *options, "program.py")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    lines = [int(n) for n in re.findall(r"program.py:(\d+): error", done.stdout)]
    first = USES.count("\n") + 2
    expected = range(first, first + MISTAKES.count("\n") - 1)
    assert sorted(set(lines)) == list(expected), done.stdout + done.stderr


def test_changelog_begins_with_its_version():
    changes = (ROOT / "deploy" / "package" / "CHANGELOG.md").read_text()
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    (newest, *_) = re.findall("^## (.+)", changes, re.MULTILINE)
    assert newest == ("Unreleased" if "dev" in version else version)
