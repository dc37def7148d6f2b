"""What a turn with tools costs the server beside one without: processor time and
statements for each turn, and processor time for each word.

`python -m bench.tools [sqlite|postgresql]`. The provider is a process of its own, and
the process that is measured has no pages. Medians of rounds in which the kinds of turn
take turns, so that other load meets all of them.
"""

import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from . import databases

ROUNDS, TURNS = 7, 5
SHORT, LONG = 20, 1_000
# The names of its tools, and what the model does before it answers.
KINDS = {
    "plain": ((), ""),
    "with tools, none called": (("search_transcript", "calculate"), ""),
    "with one call": (("search_transcript", "calculate"), "tool-call|"),
}


@contextmanager
def provider() -> Iterator[None]:
    command = [sys.executable, "-m", "tests.fakes.upstream", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            address = process.stdout.readline().strip()
            os.environ["OPENAI_BASE_URL"] = address.partition("=")[2]
            yield
        finally:
            process.terminate()


async def work_off(conversation: object, text: str) -> None:
    from channels.db import database_sync_to_async

    from chatsite.turns import commands, runner

    submit = database_sync_to_async(commands.submit_message)
    await submit(conversation, text=text, client_id=f"id-{time.monotonic_ns()}")
    runner.start_turns(conversation.pk)
    while tasks := list(runner._tasks):
        await asyncio.wait(tasks)


async def measure(conversation: object, before: str, words: int) -> tuple[float, float]:
    """Milliseconds of processor time of a turn, and its statements."""
    from channels.db import database_sync_to_async
    from django.db import connection

    asked = 0

    def count(execute: object, *args: object) -> object:
        nonlocal asked
        asked += 1
        return execute(*args)

    wrappers = await database_sync_to_async(lambda: connection.execute_wrappers)()
    wrappers.append(count)
    started = time.process_time()
    for _ in range(TURNS):
        seed = time.monotonic_ns()
        await work_off(conversation, f"mode={before}story:{seed}:{words}:0")
    spent = (time.process_time() - started) * 1000 / TURNS
    wrappers.remove(count)
    return spent, asked / TURNS


async def compare(owner: object) -> None:
    from channels.db import database_sync_to_async

    from memory import transcript

    make = database_sync_to_async(transcript.create_conversation)
    found: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for number in range(ROUNDS + 1):
        for kind, (tools, before) in KINDS.items():
            for words in (SHORT, LONG):
                # A new one each time: a long conversation would be compacted.
                conversation = await make(owner, model="ok", tools=list(tools))
                result = await measure(conversation, before, words)
                if number:  # the first round imports and connects
                    found.setdefault((kind, words), []).append(result)
    print(f"{'':26}{'ms per turn':>14}{'statements':>12}{'µs per word':>14}")
    for kind in KINDS:
        short, long = (
            statistics.median(spent for spent, _ in found[kind, words])
            for words in (SHORT, LONG)
        )
        asked = statistics.median(asked for _, asked in found[kind, SHORT])
        per_word = (long - short) * 1000 / (LONG - SHORT)
        print(f"{kind:26}{short:14.1f}{asked:12.0f}{per_word:14.1f}")


def report() -> None:
    from django.contrib.auth import get_user_model

    owner = get_user_model().objects.create_user("bench-tools")
    asyncio.run(compare(owner))


if __name__ == "__main__":
    if databases.INNER in os.environ:
        databases.run("bench.tools", report)
    else:
        with provider():
            databases.run("bench.tools", report)
