"""Outages as users see them: two processes over PostgreSQL and Redis, many replies at
once, with the lease and the sweep that a site has by default.

Usage: python -m bench.outages [replies at once] [tokens per reply]
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.faults.harness import Topology
from tests.faults.viewers import Viewer

from .provider import running_provider

LEASE, SWEEP = 10.0, 1.0
# Seconds between two tokens.
PACE = 0.05
REDIS_AWAY = 20.0
SETTINGS = {
    "TURN_LEASE_SECONDS": str(LEASE),
    "TURN_SWEEP_SECONDS": str(SWEEP),
    "MODEL_IDLE_TIMEOUT": "60",
    "MODEL_FIRST_TOKEN_TIMEOUT": "60",
    "MODEL_TOTAL_TIMEOUT": "300",
}
ENDED = "SELECT id, extract(epoch FROM finished_at) FROM chat_turn"


class Outages:
    def __init__(self, topology: Topology, count: int, tokens: int) -> None:
        self.topology = topology
        self.story = {"words": tokens, "paces": [PACE]}
        self.count = count

    def run(self, name: str, fault: object) -> None:
        with self.topology.crowd() as crowd:
            viewers = self.topology.begin_stories(crowd, self.count, **self.story)
            time.sleep(2)
            began = time.monotonic()
            outcome = fault(viewers)
            self.topology.settle_and_check(viewers, seconds=600)
            report(name, viewers, began, f"{outcome}; {self.find_lag(viewers)}")
        self.topology.start_all()

    def find_lag(self, viewers: list[Viewer]) -> str:
        """Return the delay of the screens behind the database when replies ended."""
        ended = dict(self.topology.truth.query(ENDED))
        offset = time.time() - time.monotonic()
        shown = [(v.acks[v.story], v.reply_to(v.story).ended_at) for v in viewers]
        lags = sorted(at + offset - float(ended[ack["turn"]]) for ack, at in shown)
        return (
            f"ends shown {lags[len(lags) // 2]:.1f} s later, at most {lags[-1]:.1f} s"
        )

    def nothing(self, viewers: list[Viewer]) -> str:
        return "texts as upstream sent them"

    def kill(self, viewers: list[Viewer]) -> str:
        self.topology.sites[0].kill()
        return self.watch_takeover(viewers)

    def end(self, viewers: list[Viewer]) -> str:
        started = time.monotonic()
        self.topology.sites[0].terminate()
        gone = time.monotonic() - started
        return f"process gone after {gone:.1f} s; {self.watch_takeover(viewers)}"

    def watch_takeover(self, viewers: list[Viewer]) -> str:
        """Return the times at which the remaining process began each lost
        reply again.
        """
        started = time.monotonic()
        times: dict[int, float] = {}
        while (now := time.monotonic() - started) < LEASE + SWEEP + 4:
            for turn, attempt in enumerate(self.topology.truth.attempts(viewers)):
                if attempt == 2:
                    times.setdefault(turn, now)
            time.sleep(0.1)
        taken = sorted(times.values())
        return (
            f"{len(taken)} replies taken over, the median after "
            f"{statistics.median(taken):.1f} s, the last after {taken[-1]:.1f} s"
        )

    def lose_redis(self, viewers: list[Viewer]) -> str:
        self.topology.redis.terminate()
        time.sleep(REDIS_AWAY)
        self.topology.redis.start()
        return f"back after {REDIS_AWAY:.0f} s"


def report(name: str, viewers: list[Viewer], began: float, outcome: str) -> None:
    replies = [viewer.reply_to(viewer.story) for viewer in viewers]
    lags = [reply.ended_at - began for reply in replies]
    print(
        f"{name}: {outcome}; {len(viewers)} of {len(viewers)} replies complete on the "
        f"screens, the last {max(lags):.1f} s after the fault; "
        f"{sum(reply.frames for reply in replies)} frames, "
        f"{sum(reply.gaps for reply in replies)} gaps healed, "
        f"{sum(viewer.connects - 1 for viewer in viewers)} reconnects",
        flush=True,
    )


def main(count: int = 50, tokens: int = 500) -> None:
    with (
        running_provider() as provider_url,
        tempfile.TemporaryDirectory() as folder,
        Topology(Path(folder), **SETTINGS, OPENAI_BASE_URL=provider_url) as topology,
    ):
        outages = Outages(topology, count, tokens)
        outages.run("Nothing happens", outages.nothing)
        outages.run("kill -9 of one process", outages.kill)
        outages.run("SIGTERM to one process", outages.end)
        outages.run(f"Redis away for {REDIS_AWAY:.0f} s", outages.lose_redis)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
