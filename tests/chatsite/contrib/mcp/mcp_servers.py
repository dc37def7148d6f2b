"""MCP servers of tests: real processes, over stdio and HTTP, set up as operators do."""

import json
import socket
import sys
from contextlib import suppress

from chatsite.features.tools import registry
from chatsite.features.tools.results import refine
from tests.chatsite.features.tools.calls import context_of, run
from tests.servers import ROOT, Server

PROGRAM = str(ROOT / "tests" / "fakes" / "mcp_server.py")
RAW = str(ROOT / "tests" / "fakes" / "mcp_raw.py")
STDIO = {"command": sys.executable, "args": [PROGRAM]}


class HttpServer(Server):
    def __init__(self, program=PROGRAM, *arguments, path="mcp"):
        super().__init__()
        self.program, self.arguments, self.path = program, arguments, path

    def command(self):
        return [sys.executable, self.program, str(self.port), *self.arguments]

    def is_ready(self):
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
            return True
        return False

    @property
    def entry(self):
        return {"url": f"http://127.0.0.1:{self.port}/{self.path}"}


def write(path, **servers):
    path.write_text(json.dumps({"mcpServers": servers}))
    return str(path)


async def tools_of(name="stdio"):
    await registry.ready()
    return {
        each.name.removeprefix(f"{name}_"): each
        for each in registry.available().values()
        if each.source == f"mcp:{name}"
    }


async def call(site_tool, **arguments):
    """Return the result as users get it."""
    answer = await run(site_tool.tool, context_of(), **arguments)
    return refine(answer.content, None, 1).whole
