"""python -m bench.local_model [--turns N] [--minutes N]

A conversation with the model of `make local`, whose environment (.venv-local) exists: a
real model, and a really bad summariser. Its window overflows; replies are stopped and
retried. Afterwards all messages must be there, all requests rebuilt to their hashes,
the audit clean, and no rejected summary may have left text in the memory.
"""

import argparse
import asyncio
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from tests.databases import copy_sqlite
from tests.servers import ROOT, answers

PORT, MODEL = 8135, "135M-Instruct"
SERVER = """
import threading
from scripts import local_model
local_model.REPLY_TOKENS = {tokens}
server = local_model.start_server()
threading.Event().wait()
"""
WINDOW, REPLY_TOKENS = 8192, 24
SETTINGS = {
    "DEBUG": "true",
    "OPENAI_BASE_URL": f"http://127.0.0.1:{PORT}/v1",
    "OPENAI_API_KEY": "sk-local",
    "CHAT_MODEL": MODEL,
    "CONTEXT_WINDOW": str(WINDOW),
    "SUMMARY_MAX_TOKENS": "600",
    "SYSTEM_PROMPT": "You are a helpful assistant.",
}
WORDS = ("river", "stone", "market", "letter", "winter", "garden", "bridge", "ferry")
# Words of each message, so that the window overflows about every 20 turns.
ASKED = 200
# One reply of so many is stopped, and then retried.
STOPPED, STOP_AFTER = 6, 0.4


@contextmanager
def run_model():
    python = ROOT / ".venv-local/bin/python"
    command = [python, "-c", SERVER.format(tokens=REPLY_TOKENS)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, cwd=ROOT, **quiet) as server:
        try:
            while not answers(f"http://127.0.0.1:{PORT}/v1/models"):
                if server.poll() is not None:
                    raise RuntimeError("the model's server has ended")
                time.sleep(0.2)
            yield
        finally:
            server.kill()


def write_question(number: int, chosen: random.Random) -> str:
    story = " ".join(chosen.choices(WORDS, k=ASKED))
    return f"Note {number}: {story}. In one short sentence: what is note {number} of?"


async def talk(conversation, turns: int, end: float) -> tuple[list[str], Counter]:
    """Send messages until the end; return their texts, and how the replies ended."""
    from asgiref.sync import sync_to_async

    from chatsite.turns import commands, runner

    chosen, said, ended = random.Random(5), [], Counter()

    async def wait_for(turn):
        while turn.state in ("queued", "running"):
            await asyncio.sleep(0.1)
            turn = await sync_to_async(turn.read_again)()
        ended[turn.state] += 1
        return turn

    runner.ensure_sweeping()
    while len(said) < turns and time.monotonic() < end:
        said.append(write_question(len(said) + 1, chosen))
        send = sync_to_async(commands.send_message)
        sent = await send(conversation, text=said[-1], client_id=str(uuid4()))
        runner.start_turns(conversation.pk, sent.claim)
        if len(said) % STOPPED == 0:
            await asyncio.sleep(STOP_AFTER)
            await sync_to_async(commands.stop_turn)(conversation, sent.turn.pk)
        turn = await wait_for(sent.turn)
        if turn.state == "stopped":
            turn = await sync_to_async(commands.retry_turn)(conversation, turn.pk)
            runner.start_turns(conversation.pk)
            await wait_for(turn)
    return said, ended


def find_faults(conversation, said: list[str]) -> list[str]:
    from chatsite.turns import audit as turn_audit
    from memory.integrity import audit
    from memory.models import ModelCall
    from memory.view import rebuilding

    kept = conversation.messages.filter(role="user", superseded_at=None)
    texts = [*kept.order_by("seq").values_list("text", flat=True)]
    faults = [] if texts == said else [f"{len(texts)} messages of {len(said)}"]
    calls = ModelCall.objects.filter(conversation=conversation, purpose="reply")
    faults += [f"no proof: {e.pk}" for e in calls if not rebuilding.verify_context(e)]
    summaries = conversation.summaries.all()
    undone = summaries.filter(status__in=("rejected", "failed")).exclude(text="")
    faults += [f"text of a rejected summary: {each.version}" for each in undone]
    checks = (audit.check_memory, turn_audit.check_turns)
    faults += [str(found) for check in checks for found in check()]
    found = Counter(f"{e.status} {e.error}".strip() for e in summaries)
    most = max(each.tokens_estimated for each in calls)
    print(f"{len(calls)} requests, {most} tokens at most; summaries: {dict(found)}")
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=60)
    parser.add_argument("--minutes", type=float, default=12)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, run_model():
        os.environ |= SETTINGS
        os.environ["DATABASE_URL"] = copy_sqlite(Path(folder) / "talk.sqlite3")
        from .databases import prepare

        prepare()
        from django.contrib.auth import get_user_model

        from memory.transcript import create_conversation

        conversation = create_conversation(get_user_model().objects.create_user("one"))
        end = time.monotonic() + given.minutes * 60
        said, ended = asyncio.run(talk(conversation, given.turns, end))
        faults = find_faults(conversation, said)
    print(f"{len(said)} turns, {dict(ended)}, load {os.getloadavg()[1]:.1f}")
    print(*(faults or ["no fault"]), sep="\n")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
