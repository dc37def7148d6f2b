"""python -m bench.endpoint.mcp_probes [--probes N]

Does a key ever read what its owner doesn't keep? Probes of all tools of the MCP server
for ids of another user's, deleted, temporary and made-up conversations, and searches
for a word that only these have. None may find a row or a letter of them.
"""

import argparse
import asyncio
import json
import time
import uuid
from collections import Counter
from functools import partial
from random import Random
from typing import Any

import aiohttp

from .place import make_place

WORD = "canarybird"
VERSION = "2026-07-28"
AT_ONCE = 8
# Makes the conversations that must not be found, and prints their ids.
MAKE = f"""
from django.contrib.auth import get_user_model
from memory import library, transcript
from tests.memory.scenes import say
alice, bob = get_user_model().objects.order_by("pk")[:2]
for number in range(20):
    made = [
        transcript.create_conversation(bob),
        transcript.create_conversation(alice),
        transcript.create_conversation(alice, temporary=True),
    ]
    for each in made:
        say(each, "{WORD} {{}}".format(number))
        print(each.uuid)
    library.delete_conversation(made[1])
"""


def make_probe(random: Random, ids: list[str]) -> tuple[str, dict[str, Any]]:
    where = random.choice([*ids, str(uuid.UUID(int=random.getrandbits(128)))])
    reply = random.randint(1, 4)
    return random.choice(
        [
            ("list_conversations", {"archived": random.random() < 0.5}),
            ("search_transcripts", {"query": WORD}),
            ("search_transcripts", {"query": WORD[:6], "conversation": where}),
            ("read_messages", {"conversation": where, "from_message": reply}),
            ("what_the_model_saw", {"conversation": where, "reply": reply}),
            ("what_was_left_out", {"conversation": where, "reply": reply}),
        ]
    )


def write_request(number: int, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    meta = {
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    return {
        "jsonrpc": "2.0",
        "id": number,
        "method": "tools/call",
        "params": {"name": tool, "arguments": arguments, "_meta": meta},
    }


async def call_tool(
    session: aiohttp.ClientSession,
    url: str,
    key: str,
    number: int,
    tool: str,
    arguments: dict[str, Any],
) -> dict[str, Any]:
    headers = {
        "authorization": f"Bearer {key}",
        "accept": "application/json",
        "mcp-protocol-version": VERSION,
        "mcp-method": "tools/call",
        "mcp-name": tool,
    }
    body = write_request(number, tool, arguments)
    async with session.post(url, json=body, headers=headers) as answer:
        return await answer.json()


def judge_answer(told: dict[str, Any]) -> str:
    """Return what a probe found; "nothing" is right."""
    result = told.get("result", {})
    text = result["content"][0]["text"] if result.get("content") else ""
    if WORD in json.dumps(told):
        return "a letter of them"
    if result.get("isError"):
        return "nothing" if text == "There is no such conversation." else text
    rows = json.loads(text) if text else {"broken": told}
    return "rows" if any(rows.values()) else "nothing"


async def probe_tools(count: int) -> None:
    wanted = {"MCP_SERVER_ENABLED": "true", "MCP_REQUESTS_PER_MINUTE": "0"}
    with make_place("http://127.0.0.1:1", people=2, **wanted) as place:
        ids = place.site.manage("shell", "--no-imports", "-c", MAKE).split()
        key = place.site.manage("create_key", "person0", "--scope", "read").strip()
        owner = place.site.manage("create_key", "person1", "--scope", "read").strip()
        random, found = Random(33), Counter[tuple[str, str]]()
        todo = ((number, *make_probe(random, ids)) for number in range(count))
        started = time.monotonic()
        async with aiohttp.ClientSession() as session:
            call = partial(call_tool, session, f"{place.site.url}/mcp")
            # Without this check, the probes would prove nothing.
            told = await call(owner, 0, "search_transcripts", {"query": WORD})
            print("their owner finds", judge_answer(told))

            async def work() -> None:
                for number, tool, arguments in todo:
                    told = await call(key, number, tool, arguments)
                    found[tool, judge_answer(told)] += 1

            await asyncio.gather(*(work() for _ in range(AT_ONCE)))
        seconds = time.monotonic() - started
        for (tool, what), number in sorted(found.items()):
            print(f"{tool}: {number} found {what}")
        print(f"{found.total()} probes of {len(ids)} ids, {seconds:.0f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--probes", type=int, default=10_000)
    asyncio.run(probe_tools(parser.parse_args().probes))
