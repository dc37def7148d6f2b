"""A model that calls the tools of its client, twice, and then says what came of it."""

import json
from typing import Any

from tests.fakes import wires
from tests.fakes.upstream import Exchange, Upstream

PLACES = ("Kyoto", "Nara")
# What each tool is called with: a command proves that it ran, as only its output has
# the number.
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
    """Each conversation is at the call that its results say."""

    def __init__(self) -> None:
        super().__init__()
        # Results before a response, by its id.
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
