"""python -m bench.endpoint.mcp_conformance

Runs the scenarios of the protocol's own suite that apply to the MCP server. The suite
sends no key, so a proxy adds it. Needs npm; the suite and the Node version that it
needs are installed into `.venv-conformance`. The other scenarios need tools, prompts
and resources of a server that is made for the suite.
"""

import asyncio
import re
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import ClientSession, web

from .place import make_place

PACKAGE = "@modelcontextprotocol/conformance"
VERSION, NODE = "0.2.0-alpha.12", "node@22"
FOLDER = Path(".venv-conformance")
# Scenarios by revision of the protocol.
SCENARIOS = {
    "2025-11-25": (
        *("server-initialize", "ping", "tools-list", "dns-rebinding-protection"),
    ),
    "2026-07-28": (
        *("server-stateless", "tools-list", "caching", "dns-rebinding-protection"),
        *("http-header-validation", "server-sse-multiple-streams"),
        *("input-required-result-unsupported-methods", "sep-2164-resource-not-found"),
    ),
}
COUNTS = re.compile(r"^Passed: (\d+)/(\d+)", re.MULTILINE)
FAILED = re.compile(r"^  - (\w+): .*\n    Error: (.*)$", re.MULTILINE)
# Checks of prompts, resources and a tool that only the suite's own server has.
ABSENT = ("-32601: Method not found", "Not testable: server does not list")


def install_suite() -> list[str]:
    """Install the suite if needed; return the beginning of its command."""
    programs = FOLDER / "node_modules" / ".bin"
    if not (programs / "conformance").exists():
        name = f"{PACKAGE}@{VERSION}"
        command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(FOLDER)]
        subprocess.run([*command, NODE, name], check=True, capture_output=True)
    return [str(programs / "node"), str(programs / "conformance")]


@asynccontextmanager
async def add_key(site: str, key: str) -> AsyncIterator[str]:
    """Run a proxy that adds this key to each request; yield its address."""

    async def pass_on(request: web.Request) -> web.Response:
        headers = {**request.headers, "Authorization": f"Bearer {key}"}
        body = await request.read()
        address = f"{site}{request.path_qs}"
        async with session.request(
            request.method, address, headers=headers, data=body
        ) as answer:
            told = {
                name: value
                for name, value in answer.headers.items()
                if name.lower() not in ("content-length", "transfer-encoding")
            }
            return web.Response(
                status=answer.status, headers=told, body=await answer.read()
            )

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", pass_on)
    runner = web.AppRunner(application)
    await runner.setup()
    line = web.TCPSite(runner, "127.0.0.1", 0)
    await line.start()
    port = runner.addresses[0][1]
    async with ClientSession() as session:
        yield f"http://localhost:{port}/mcp"
    await runner.cleanup()


async def run_scenario(program: list[str], url: str, version: str, name: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *(*program, "server", "--url", url, "--scenario", name),
        *("--spec-version", version, "--verbose"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    told = (await process.communicate())[0].decode(errors="replace")
    failed = FAILED.findall(told)
    wrong = [each for each in failed if not any(word in each[1] for word in ABSENT)]
    passed, checks = COUNTS.search(told).groups()
    count = f"{passed} of {checks} checks"
    if absent := len(failed) - len(wrong):
        count += f", {absent} of what this server does not have"
    return f"failed: {wrong}" if wrong else count


async def check_conformance() -> None:
    program = install_suite()
    wanted = {"MCP_SERVER_ENABLED": "true", "MCP_REQUESTS_PER_MINUTE": "0"}
    hosts = {"ALLOWED_HOSTS": "127.0.0.1,localhost", "SITE_ORIGINS": ""}
    with make_place("http://127.0.0.1:1", **wanted, **hosts) as place:
        key = place.site.manage("create_key", "person0", "--scope", "read").strip()
        async with add_key(place.site.url, key) as url:
            for version, names in SCENARIOS.items():
                for name in names:
                    print(
                        version, name, await run_scenario(program, url, version, name)
                    )


if __name__ == "__main__":
    asyncio.run(check_conformance())
