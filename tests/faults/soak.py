"""Rounds of random faults under load; after each the audit is clean and every screen
shows what the database and the provider have. Run by `make soak`; ROUNDS=20 and SEED
choose how many and which ones.
"""

import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

from .harness import LEASE, SWEEP, Topology, story_text

CONVERSATIONS = 12
# With its takeovers, a round that takes longer than this hangs.
SETTLE = 90.0


class Soak:
    """One topology, one source of chance, and a tally."""

    def __init__(self, topology, seed):
        self.topology = topology
        self.random = random.Random(seed)
        self.sent = self.attempts = self.files = 0
        self.states = {}
        self.faults = (
            self.kill,
            self.terminate,
            self.freeze,
            self.stop_redis,
            self.freeze_redis,
            self.crash_postgres,
            self.cut_connections,
        )

    def pick_site(self):
        return self.random.choice([s for s in self.topology.sites if s.is_running])

    def pause(self, longest):
        time.sleep(self.random.uniform(0, longest))

    def kill(self):
        site = self.pick_site()
        site.kill()
        self.pause(LEASE + 2)
        site.start()

    def terminate(self):
        site = self.pick_site()
        site.terminate()
        self.pause(2)
        site.start()

    def freeze(self):
        site = self.pick_site()
        site.send(signal.SIGSTOP)
        self.pause(2 * LEASE)
        site.send(signal.SIGCONT)

    def stop_redis(self):
        self.topology.redis.terminate()
        self.pause(LEASE)
        self.topology.redis.start()

    def freeze_redis(self):
        self.topology.redis.send(signal.SIGSTOP)
        self.pause(LEASE)
        self.topology.redis.send(signal.SIGCONT)

    def crash_postgres(self):
        self.topology.postgres.crash()
        self.pause(LEASE + 1)
        self.topology.postgres.start()

    def cut_connections(self):
        self.topology.cut_connections()

    def round(self):
        """The names of its faults, and the seconds until all was well again."""
        faults = self.random.choices(self.faults, k=self.random.choice((1, 1, 2)))
        with self.topology.crowd() as crowd:
            viewers = self.topology.begin_stories(crowd, CONVERSATIONS)
            for viewer in self.random.sample(viewers, 6):
                viewer.send(story_text(20))
            self.pause(2)
            for fault in faults:
                fault()
                for viewer in self.random.sample(viewers, 3):
                    viewer.send(story_text(20))
            settled = self.topology.settle_and_check(viewers, seconds=SETTLE)
            self.files += self.topology.check_evidence()
            self.count(viewers)
        return [fault.__name__ for fault in faults], settled

    def count(self, viewers):
        mine = {client_id for viewer in viewers for client_id in viewer.texts}
        rows = [row for row in self.topology.truth.rows() if row.client_id in mine]
        self.sent += len(rows)
        self.attempts += sum(row.attempt for row in rows)
        for row in rows:
            self.states[row.state] = self.states.get(row.state, 0) + 1


def say(text):
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def run(rounds, seed):
    say(f"SEED={seed} ROUNDS={rounds} (lease {LEASE} s, sweep {SWEEP} s)")
    with tempfile.TemporaryDirectory() as folder, Topology(Path(folder)) as topology:
        soak = Soak(topology, seed)
        for number in range(1, rounds + 1):
            try:
                faults, settled = soak.round()
            except BaseException:
                topology.show_logs()
                say(f"Round {number} failed. Again: SEED={seed} make soak")
                raise
            say(
                f"round {number:2}: {' + '.join(faults):32} settled in {settled:4.1f} s"
            )
            topology.start_all()
    states = ", ".join(f"{count} {state}" for state, count in soak.states.items())
    say(
        f"{soak.sent} messages in {soak.attempts} attempts: {states}. None lost, none "
        "doubled, every text the same on the screen, in the database and upstream. "
        f"{soak.files} files of evidence have a place for every message."
    )


def main():
    seed = os.environ.get("SEED") or str(random.SystemRandom().randrange(10**6))
    run(int(os.environ.get("ROUNDS") or 20), seed)


if __name__ == "__main__":
    main()
