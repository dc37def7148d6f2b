"""python -m bench.tracing [--rounds N]

Processor time of the server for a turn of the chat: without a collector, and with one
that takes every span, in alternated rounds. Also looks for a word of the turns in what
the collector got. Needs the libraries of requirements/tracing.lock; without them only
the first is measured.
"""

import argparse
import asyncio
import statistics
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.util import find_spec
from threading import Thread

from bench.endpoint.place import Place, make_place
from bench.endpoint.provider import Provider
from bench.streaming.contestants import cpu_of_tree
from tests.clients import Person

TURNS, WORDS = 20, 60
CANARY = "canarybird"


class Collector(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.bodies.append(body)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""


@contextmanager
def run_collector() -> Iterator[HTTPServer]:
    server = HTTPServer(("127.0.0.1", 0), Collector)
    server.bodies = []
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()


def play_round(place: Place, person: Person, number: int) -> float:
    """Milliseconds of processor time of a turn."""
    path = person.create()
    with person.chat(path) as chat:
        chat.say(f"{CANARY} begins {number}")
        before = cpu_of_tree(place.site.process.pid)
        for turn in range(TURNS):
            chat.say(f"{CANARY} says {turn}")
        spent = cpu_of_tree(place.site.process.pid) - before
    return spent * 1_000 / TURNS


def play_rounds(url: str, rounds: int) -> None:
    with ExitStack() as stack:
        collector = stack.enter_context(run_collector())
        address = f"http://127.0.0.1:{collector.server_port}"
        ways = {"without a collector": {}}
        if find_spec("opentelemetry.sdk"):
            ways["with a collector"] = {"OTEL_EXPORTER_OTLP_ENDPOINT": address}
        places, costs = {}, {name: [] for name in ways}
        for name, env in ways.items():
            place = stack.enter_context(make_place(url, SIGNUP_ENABLED="true", **env))
            places[name] = place, Person(place.site, "chatter")
        for number in range(rounds):
            for name, (place, person) in places.items():
                costs[name].append(play_round(place, person, number))
    for name, found in costs.items():
        print(f"{name}: {statistics.median(found):.2f} ms of processor time per turn")
    exported = b"".join(collector.bodies)
    found = exported.count(CANARY.encode())
    print(f"{len(exported):,} bytes exported, the canary in them {found} times")


async def measure(rounds: int) -> None:
    async with Provider().running() as provider:
        provider.words = WORDS
        await asyncio.to_thread(play_rounds, provider.url, rounds)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=8)
    asyncio.run(measure(parser.parse_args().rounds))
