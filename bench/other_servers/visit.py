"""A person at the real site: a conversation whose replies call tools, until a summary
has been made and used, and then everything that has to hold.
"""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.clients import Person
from tests.patience import wait_for
from tests.plugin import ENVIRONMENT
from tests.servers import Site

from . import ADD, SEARCH

# More than six messages are summarised, and two stay.
PRESET = "langgraph"
BEFORE, AFTER = 4, 3
SENTENCE = "The ferry to pier {n} takes {n}5 minutes, says captain Nemo{n}."
SETTINGS = {
    "DEFAULT_TOOLS": f"{SEARCH},{ADD}",
    "CHAT_MODEL": "chat",
    "OPENAI_API_KEY": "sk-bench",
    "MESSAGES_PER_MINUTE": "0",
}
# What search_transcript writes above what it found.
FOUND = "Quoted from this conversation."


@dataclass
class Outcome:
    """What came of a conversation. `faults` has a sentence for each thing that should
    have been otherwise."""

    states: list[str] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)
    summaries: int = 0
    found: int = 0
    is_clean: bool = False
    faults: list[str] = field(default_factory=list)
    # As the site says it was sent for the last reply.
    last: dict[str, Any] = field(default_factory=dict)

    def check(self, holds: object, fault: str) -> None:
        if not holds:
            self.faults.append(fault)

    @property
    def cells(self) -> list[str]:
        """For the table: turns, calls, searches that found something, summaries and
        the audit."""
        done = sum(state == "done" for state in self.states)
        ended = sum(call["state"] == "done" for call in self.calls)
        return [
            f"{done} of {len(self.states)}",
            f"{ended} of {len(self.calls)}",
            str(self.found),
            str(self.summaries),
            "clean" if self.is_clean else "not clean",
        ]


@contextmanager
def serve(base_url: str) -> Iterator[Site]:
    """The site as a process, with an empty database, in front of this server."""
    site = Site({**ENVIRONMENT, **SETTINGS, "OPENAI_BASE_URL": base_url})
    site.env["DATABASE_URL"] = f"sqlite:///{site.folder / 'site.sqlite3'}"
    # Its own address is known only now.
    site.env["SITE_ORIGINS"] = site.url
    site.manage("migrate", "--verbosity", "0")
    with site:
        yield site


def converse(base_url: str) -> Outcome:
    """Sign up, talk and look at what is stored; all over HTTP and the socket."""
    outcome = Outcome()
    with serve(base_url) as site:
        person = Person(site, "ann")
        path = person.create(PRESET)
        with person.chat(path) as chat:
            say(chat, range(BEFORE), outcome)
            wait_for_summary(person, path, outcome)
            say(chat, range(BEFORE, BEFORE + AFTER), outcome)
        look(person, path, outcome)
        audit(site, outcome)
        if outcome.faults:
            site.show_log()
    return outcome


def try_once(base_url: str) -> Outcome:
    """One message, whose turn has to fail once its call is done."""
    outcome = Outcome()
    with serve(base_url) as site:
        person = Person(site, "ann")
        path = person.create(PRESET)
        with person.chat(path) as chat:
            outcome.states.append(chat.say(SENTENCE.format(n=0))["state"])
        outcome.calls = person.get_json(f"{path}export.json")["tool_calls"]
        audit(site, outcome)
    outcome.check(outcome.states == ["failed"], f"no longer fails: {outcome.states}")
    return outcome


def say(chat: Any, numbers: range, outcome: Outcome) -> None:
    for number in numbers:
        end = chat.say(SENTENCE.format(n=number))
        outcome.states.append(end["state"])
        outcome.check(
            end["state"] == "done" and end["text"].strip(),
            f"message {number} ended as {end['state']}: {end.get('error') or 'empty'}",
        )


def wait_for_summary(person: Person, path: str, outcome: Outcome) -> None:
    try:
        wait_for(lambda: read_summaries(person, path), 60, "a summary")
    except AssertionError as error:
        outcome.faults.append(str(error))


def read_summaries(person: Person, path: str) -> list[dict[str, Any]]:
    rows = person.get_json(f"{path}summaries.json")["summaries"]
    return [row for row in rows if row["status"] == "active"]


def look(person: Person, path: str, outcome: Outcome) -> None:
    """What the conversation holds now, and what its last reply was made of."""
    export = person.get_json(f"{path}export.json")
    rows = person.get_json(f"{path}transcript.json")["messages"]
    outcome.calls = export["tool_calls"]
    outcome.summaries = len(person.get_json(f"{path}summaries.json")["summaries"])
    results = [row for row in rows if row["role"] == "tool"]
    outcome.found = sum(row["text"].startswith(FOUND) for row in results)
    for call in outcome.calls:
        outcome.check(call["state"] == "done", f"a call is {call['state']}: {call}")
    outcome.check(len(outcome.calls) >= len(outcome.states), "turns without a call")
    outcome.check(len(results) == len(outcome.calls), "a call without its result")
    outcome.check(outcome.found, "no search found anything")
    if outcome.states[-1] == "done":
        last = rows[-1]["seq"]
        outcome.last = person.get_json(f"{path}context.json?reply={last}")
        check_last(outcome)


def check_last(outcome: Outcome) -> None:
    """The request for the last reply, as it is rebuilt from the tables."""
    sent, refs = outcome.last["messages"], outcome.last["refs"]
    outcome.check(refs["summaries"], "no summary was in the last request")
    outcome.check(sent[-1]["role"] == "tool", "the last request ends with no result")
    outcome.check(outcome.last["sha256"] == hash_of(sent), "the hash is another one")
    is_taken = not refs.get("tools_refused")
    outcome.check(is_taken, "the server was taken for one that has no tools")


def hash_of(messages: list[dict[str, Any]]) -> str:
    """As docs/protocol.md describes it."""
    text = json.dumps(
        messages, ensure_ascii=False, sort_keys=True, separators=(",", ":")
    )
    return hashlib.sha256(text.encode()).hexdigest()


def audit(site: Site, outcome: Outcome) -> None:
    try:
        site.manage("audit")
        outcome.is_clean = True
    except RuntimeError as error:
        outcome.faults.append(str(error))
