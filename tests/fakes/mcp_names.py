"""An MCP server over stdio whose tools have names and schemas that providers, or the
protocol, refuse.
"""

import json
import sys

LONG = "list_all_the_recurring_transactions_of_the_account_with_balances_and_notes"
NAMES = ("calendar.create_event", "calendar_create_event", "v2/search", LONG, "notes")
TEXT = {"type": "string"}


def answer(message):
    params = message.get("params") or {}
    match message["method"]:
        case "initialize":
            return {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "names", "version": "1"},
            }
        case "tools/list":
            schema = {"type": "object", "properties": {"q": TEXT}}
            sound = [{"name": name, "inputSchema": schema} for name in NAMES]
            torn = {"type": "object", "properties": {"q": TEXT, "type": "object"}}
            return {
                "tools": [
                    {"name": "torn", "inputSchema": torn},
                    *sound,
                    {"name": "bare"},
                    "no tool",
                ]
            }
        case "tools/call":
            return {"content": [{"type": "text", "text": f"called {params['name']}"}]}
    return None


def main():
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and (result := answer(message)) is not None:
            reply = {"jsonrpc": "2.0", "id": message["id"], "result": result}
            print(json.dumps(reply), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
