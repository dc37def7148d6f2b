"""Servers that are asked over HTTP: any server, or a site with its own provider."""

import json
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import count
from random import Random
from typing import Any
from urllib.error import HTTPError

from tests.databases import Postgres
from tests.fakes import wires
from tests.fakes.upstream import Exchange, Upstream
from tests.servers import Site

from .in_memory import Answer
from .place import make_place
from .wires import PATHS, Request, Said, read_answer

# The temperature of a request selects its reply.
STEP = 1e-6
# The share of threads that have ended, and the status that says so.
ENDED, NOT_FOUND = 0.25, 404


class HttpTarget:
    """A server of these APIs."""

    def __init__(
        self,
        base_url: str,
        keys: Sequence[str],
        wish: Callable[[Said | None], dict[str, Any]] = lambda reply: {},
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self.keys = keys
        # Returns fields of the body that select the provider's reply.
        self.wish = wish

    def send(self, user: int, request: Request, reply: Said | None) -> Answer:
        key = self.keys[user]
        headers = {"content-type": "application/json", **request.headers}
        headers["authorization"] = f"Bearer {key}"
        if request.wire == "messages":
            headers |= {"x-api-key": key, "anthropic-version": "2023-06-01"}
        url = self.base_url + PATHS[request.wire]
        data = json.dumps({**request.body, **self.wish(reply)}).encode()
        asked = urllib.request.Request(url, data, headers)  # noqa: S310
        try:
            answered = urllib.request.urlopen(asked)  # noqa: S310
        except HTTPError as error:
            if error.code != NOT_FOUND or request.whole is None:
                raise
            error.close()
            again = replace(request, body=request.whole, whole=None)
            answer = self.send(user, again, reply)
            # What was decided for the first one holds for both.
            is_same = error.headers["x-windowpane-conversation"] == answer.conversation
            first = error.headers["x-windowpane-lineage"]
            return replace(answer, lineage=first) if is_same else answer
        with answered as answer:
            said = read_answer(request.wire, json.load(answer))
            conversation = answer.headers["x-windowpane-conversation"]
            return Answer(conversation, answer.headers["x-windowpane-lineage"], said)


class TalkProvider(Upstream):
    """A provider that sends the reply that the conversation wants."""

    # Clients send results in any order.
    is_strict = False

    def __init__(self) -> None:
        super().__init__()
        self.numbers = count()
        self.random = Random("ended threads")
        self.replies: dict[int, Said] = {}

    def wish(self, reply: Said | None) -> dict[str, Any]:
        number = next(self.numbers)
        self.replies[number] = reply or Said("assistant", "OK.")
        return {"temperature": number * STEP}

    def next_mode(self, body: dict[str, Any]) -> Any:
        return self.answer

    def answer(self, x: Exchange) -> None:
        self.requests.clear()
        thread = x.body.get("thread", {})
        if "previous_message_id" in thread and self.random.random() < ENDED:
            details = {"error_code": "thread_not_found"}
            error = {"type": "not_found_error", "message": "", "details": details}
            x.send_json({"type": "error", "error": error}, NOT_FOUND)
            return
        said = self.replies.pop(round(x.body["temperature"] / STEP))
        calls = [wires.Call(each.name, each.arguments, each.id) for each in said.calls]
        reply = wires.Reply(said.text, calls)
        wire = wires.find_wire(x.handler.path)
        x.send_json(wires.write_whole(wire, str(x.body.get("model")), reply))


@contextmanager
def run_site(people: int, *, is_postgres: bool) -> Iterator[tuple[HttpTarget, Site]]:
    """Run a server process with its database, SQLite or PostgreSQL."""
    provider = TalkProvider()
    more = {"ANTHROPIC_BASE_URL": provider.url.removesuffix("/v1")}
    with ExitStack() as stack:
        stack.enter_context(provider)
        if is_postgres:
            server = stack.enter_context(Postgres())
            more["DATABASE_URL"] = stack.enter_context(server.database())
        place = stack.enter_context(make_place(provider.url, people=people, **more))
        url = f"{place.site.url}/v1"
        yield HttpTarget(url, place.keys, provider.wish), place.site
