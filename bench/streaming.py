"""How long many replies at once wait for their first token, and what a token costs.

The provider is the fake one on loopback, in a process of its own: 200 words, one every
20 ms. Usage: python bench/streaming.py [replies at once] ...
"""

import asyncio
import os
import statistics
import subprocess
import sys
import time

from langchain_core.messages import HumanMessage

from chatsite.llm.streaming import ReplyStream

WORDS, DELAY = 200, 0.02


async def read(model: str, pieces: list[int], waits: list[int]) -> None:
    stream = ReplyStream(model, [HumanMessage("Go on.")])
    pieces.append(len([piece async for piece in stream]))
    waits.append(stream.first_token_ms)


async def measure(count: int) -> None:
    model = f"ok-slow:{WORDS}:{DELAY}"
    pieces: list[int] = []
    waits: list[int] = []
    started, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(read(model, pieces, waits) for _ in range(count)))
    seconds = time.perf_counter() - started
    microseconds = (time.process_time() - cpu) / sum(pieces) * 1e6
    worst = statistics.quantiles(waits, n=20)[-1] if count > 1 else waits[0]
    print(
        f"{count:4} replies: first token median {statistics.median(waits):.0f} ms, "
        f"p95 {worst:.0f} ms; {microseconds:.0f} us of CPU per token; "
        f"{seconds:.1f} s of at least {WORDS * DELAY:.1f} s"
    )


def main(counts: list[int]) -> None:
    command = [sys.executable, "-m", "tests.fakes.upstream", "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        os.environ["OPENAI_BASE_URL"] = server.stdout.readline().strip().split("=")[1]
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsite.settings")
        # Imports and the first connection are not what is measured.
        asyncio.run(read("ok", [], []))
        for count in counts:
            asyncio.run(measure(count))
    finally:
        server.kill()
        server.wait()


if __name__ == "__main__":
    main([int(value) for value in sys.argv[1:]] or [1, 10, 50])
