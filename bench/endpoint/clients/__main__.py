"""python -m bench.endpoint.clients [--folder FOLDER] [NAME …]

Each client, unchanged, is asked about the weather at two places, through a site whose
provider calls the client's own tool twice. Then what the site kept is looked at: the
results in the transcript, each body by its hash, and the audit. The clients are
installed below FOLDER once, in pinned versions.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import sync_playwright

from bench import environments
from bench.page import USER, open_conversation, running_site, sign_in
from scripts.camera import Camera
from tests.servers import Site, find_chromium

from .judging import judge
from .provider import ToolProvider

HERE = Path(__file__).parent
SECONDS = 300
# The name makes the text of each client different: equal ones could be joined.
ASK = "This is {name}. How is the weather in Kyoto and in Nara? Use your tool."
PYTHON_CLIENTS = (
    *("openai-chat", "openai-responses", "openai-agents", "anthropic"),
    *("langchain-openai", "langchain-responses", "langchain-anthropic"),
    *("litellm", "litellm-anthropic"),
)
NODE_CLIENTS = (
    *("node-openai-chat", "node-openai-responses", "node-anthropic"),
    *("ai-sdk", "ai-sdk-anthropic"),
)
# Prints the requests of each key: conversation, lineage, rows and hash check.
LOOK = """
import json
from chatsite.contrib.endpoint.models import ClientRequest
from memory import context
from memory.view import rebuilding
found = {}
for asked in ClientRequest.objects.order_by("pk").select_related("key", "call"):
    rows = asked.call.conversation.messages.order_by("seq")
    told = found.setdefault(asked.key.name, [])
    told.append({
        "conversation": asked.call.conversation_id, "lineage": asked.lineage,
        "path": f"/c/{asked.call.conversation.uuid}/",
        "is_proved": rebuilding.verify_context(asked.call),
        "texts": [[row.role, row.text] for row in rows],
    })
print("LOOK" + json.dumps(found))
"""


@dataclass
class Client:
    name: str
    command: Sequence[str]
    env: dict[str, str] = field(default_factory=dict)


def list_clients(folder: Path, site: str, scratch: Path) -> list[Client]:
    python, npm = folder / "py" / "bin" / "python", folder / "npm"
    found = [
        Client(name, [str(python), str(HERE / "sdk_clients.py"), name])
        for name in PYTHON_CLIENTS
    ]
    found += [
        Client(name, ["node", str(HERE / "sdk_clients.mjs"), name, str(npm)])
        for name in NODE_CLIENTS
    ]
    programs = npm / "node_modules" / ".bin"
    return [
        *found,
        _make_llm(python, site, scratch),
        *_make_agents(programs, site, scratch),
    ]


def _make_llm(python: Path, site: str, scratch: Path) -> Client:
    models = scratch / "llm"
    models.mkdir()
    model = "- model_id: windowpane\n  model_name: gpt-5.4-mini\n"
    told = f"{model}  api_base: {site}/v1\n  api_key_name: windowpane\n"
    (models / "extra-openai-models.yaml").write_text(f"{told}  supports_tools: true\n")
    tool = "def weather(place: str) -> str:\n    return f'{place}-{6 * 7} degrees'"
    program = [str(python.parent / "llm"), "-m", "windowpane", "--key", "{key}"]
    command = [*program, "--functions", tool, "{ask}"]
    return Client("llm", command, {"LLM_USER_PATH": str(models)})


def _make_agents(programs: Path, site: str, scratch: Path) -> list[Client]:
    """Make clients that have a shell as their tool, each in its own folder."""
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{site}/v1", "apiKey": "{env:OPENAI_API_KEY}"},
        "models": {"gpt-5.4-mini": {}},
    }
    opencode = {
        "provider": {"windowpane": provider},
        "model": "windowpane/gpt-5.4-mini",
    }
    codex = {
        "model": "gpt-5.4-mini",
        "model_provider": "windowpane",
        "model_providers.windowpane.name": "Windowpane",
        "model_providers.windowpane.base_url": f"{site}/v1",
        "model_providers.windowpane.env_key": "OPENAI_API_KEY",
        "model_providers.windowpane.wire_api": "responses",
    }
    given = [each for key, text in codex.items() for each in ("-c", f'{key}="{text}"')]
    run = ["exec", "--skip-git-repo-check", "-s", "danger-full-access"]
    claude = ["-p", "--allowedTools", "Bash", "--", "{ask}"]
    quiet = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    home = {"HOME": str(scratch), "CODEX_HOME": str(scratch / "codex")}
    (scratch / "codex").mkdir()
    return [
        Client("claude-code", [str(programs / "claude"), *claude], {**home, **quiet}),
        Client("qwen-code", [str(programs / "qwen"), "--yolo", "-p", "{ask}"], home),
        Client("codex", [str(programs / "codex"), *run, *given, "{ask}"], home),
        Client(
            "opencode",
            [str(programs / "opencode"), "run", "{ask}"],
            {**home, "OPENCODE_CONFIG_CONTENT": json.dumps(opencode)},
        ),
    ]


def run_client(client: Client, site: str, key: str, folder: Path) -> str:
    """Run the client; return its output, or "" if it failed."""
    ask = ASK.format(name=client.name)
    env = {
        **os.environ,
        "ASK": ask,
        **{"OPENAI_BASE_URL": f"{site}/v1", "OPENAI_API_KEY": key},
        **{"ANTHROPIC_BASE_URL": site, "ANTHROPIC_API_KEY": key},
        **{"OPENAI_MODEL": "gpt-5.4-mini", "NO_PROXY": "127.0.0.1"},
        **client.env,
    }
    if client.name == "claude-code":
        # An Anthropic key would need a confirmation by the user.
        env["ANTHROPIC_AUTH_TOKEN"] = env.pop("ANTHROPIC_API_KEY")
    try:
        done = subprocess.run(
            [
                each.replace("{key}", key).replace("{ask}", ask)
                for each in client.command
            ],
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        print(client.name, "took too long:", str(error.stderr)[-2000:])
        return ""
    if done.returncode:
        print(client.name, "failed:", done.stdout[-1000:], done.stderr[-2000:])
    return "" if done.returncode else done.stdout.strip()


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.endpoint.clients", description=__doc__
    )
    parser.add_argument("--folder", type=Path, default=Path(".venv-clients"))
    parser.add_argument("--picture", help="of which client, for clients.md")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    folder = given.folder.resolve()
    install(folder)
    provider = ToolProvider()
    more = {"ANTHROPIC_BASE_URL": provider.url.removesuffix("/v1")}
    more |= {"MESSAGES_PER_MINUTE": "600", "CONVERSATIONS_PER_MINUTE": "600"}
    with (
        tempfile.TemporaryDirectory() as scratch,
        provider,
        running_site(Path(scratch), provider.url, **more) as site,
    ):
        told = run_clients(site, folder, Path(scratch), given.names)
        found = look_at_site(site)
        faults = print_faults(told, found)
        if given.picture:
            take_picture(site, given.picture, found[given.picture][-1]["path"])
        site.manage("audit")
        print("audit: clean")
    return 1 if faults else 0


def install(folder: Path) -> None:
    environments.make(folder / "py", HERE / "requirements.txt")
    wanted = (HERE / "package.json").read_text()
    package = folder / "npm" / "package.json"
    if not package.exists() or package.read_text() != wanted:
        package.parent.mkdir(parents=True, exist_ok=True)
        npm = ("npm", "install", "--no-audit", "--no-fund")
        package.write_text(wanted)
        environments.run(*npm, "--prefix", str(package.parent))


def run_clients(
    site: Site, folder: Path, scratch: Path, names: list[str]
) -> dict[str, str]:
    told: dict[str, str] = {}
    for client in list_clients(folder, site.url, scratch):
        if names and client.name not in names:
            continue
        key = site.manage("create_key", USER, "--name", client.name).strip()
        place = scratch / f"in-{client.name}"
        place.mkdir()
        told[client.name] = run_client(client, site.url, key, place)
    return told


def look_at_site(site: Site) -> dict[str, list[dict]]:
    lines = site.manage("shell", "-c", LOOK).splitlines()
    look = next(line for line in lines if line.startswith("LOOK"))
    return json.loads(look.removeprefix("LOOK"))


def print_faults(told: dict[str, str], found: dict[str, list[dict]]) -> int:
    faults = 0
    for name, text in told.items():
        requests = found.get(name, [])
        fault = judge(text, requests)
        faults += bool(fault)
        print(f"{name:22} {len(requests)} requests, {fault or 'finished, proved'}")
    return faults


def take_picture(site: Site, name: str, path: str) -> None:
    """Take a picture of the page with this client's conversation."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_chromium(), args=["--no-sandbox"]
        )
        context = browser.new_context(viewport={"width": 1280, "height": 800})
        page = sign_in(context, site)
        open_conversation(page, f"{site.url}{path}")
        Camera(browser, site).take(page, f"client-{name}")


if __name__ == "__main__":
    sys.exit(main())
