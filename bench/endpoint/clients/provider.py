"""A model that calls a tool of its client twice, and then repeats the results."""

import json
from typing import Any

from tests.fakes import wires
from tests.fakes.upstream import Exchange, Upstream

PLACES = ("Kyoto", "Nara")
# The arguments of each tool's calls. Only the output of a command has the number, which
# proves that it ran.
COMMANDS = [f"echo {place}-$((6*7))" for place in PLACES]
TOOLS: dict[str, list[dict[str, Any]]] = {
    "weather": [{"place": place} for place in PLACES],
    # Claude Code.
    "Bash": [{"command": each, "description": "Looks"} for each in COMMANDS],
    # OpenCode.
    "bash": [{"command": each, "description": "Looks"} for each in COMMANDS],
    # Qwen Code.
    "run_shell_command": [
        {"command": each, "is_background": False, "description": "Looks"}
        for each in COMMANDS
    ],
    # Codex.
    "exec_command": [{"cmd": each} for each in COMMANDS],
    "shell": [{"command": ["bash", "-lc", each]} for each in COMMANDS],
    "shell_command": [{"command": each} for each in COMMANDS],
}


class ToolProvider(Upstream):
    """A provider that makes the next call after the results it was sent."""

    def __init__(self) -> None:
        super().__init__()
        # Earlier results by the id of their response.
        self.results: dict[str, list[str]] = {}

    def next_mode(self, body: dict[str, Any]) -> Any:
        return self.answer

    def answer(self, x: Exchange) -> None:
        if x.handler.path.partition("?")[0].endswith("/count_tokens"):
            return x.send_json({"input_tokens": 9})
        wire, model = wires.find_wire(x.handler.path), str(x.body.get("model"))
        said = wires.list_said(wire, x.body)
        results = [text for role, text in said if role == "tool"]
        results = self.results.get(x.body.get("previous_response_id"), []) + results
        reply = self.find_reply(x.body, results)
        if not x.is_stream:
            return x.send_json(wires.write_whole(wire, model, reply))
        for event in wires.write_events(wire, model, reply):
            x.write(event)
        if wire == "responses":
            last = json.loads(event.partition(b"data: ")[2])["response"]
            self.results[last["id"]] = results
        x.close()

    def find_reply(self, body: dict[str, Any], results: list[str]) -> wires.Reply:
        names = [name_tool(tool) for tool in body.get("tools") or ()]
        name = next((name for name in names if name in TOOLS), None)
        if name is None:
            return wires.Reply("Weather")
        if len(results) < len(PLACES):
            call = wires.Call(name, json.dumps(TOOLS[name][len(results)]))
            return wires.Reply(f"I look at {PLACES[len(results)]}.", [call])
        return wires.Reply(f"In the end: {' and '.join(results)}")


def name_tool(tool: dict[str, Any]) -> str:
    return str((tool.get("function") or tool).get("name"))
