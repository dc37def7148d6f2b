"""python -m bench.endpoint.identity [--conversations N] [--base-url URL --key KEY ...]

Sends conversations as clients do, with all changes that clients make to the history
that they resend, and counts the conversations that the server recognised. Without an
address, the benchmark calls the rule itself, with a store in memory; with `--http`, it
starts a site with a provider for all APIs. Each key belongs to another user, and two
users send the same texts: their conversations must stay separate.

The server reports its decision in two headers of each answer,
`x-windowpane-conversation` and `x-windowpane-lineage`.
"""

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from random import Random
from threading import Lock
from typing import Any, Protocol

from bench.streaming.contestants import cpu_of_tree

from .in_memory import Answer, MemoryTarget
from .over_http import HttpTarget, run_site
from .talks import (
    ASIDES,
    SUMMARISE,
    SUMMARY,
    Talk,
    forget_beginning,
    make_reply,
    make_talks,
    take_step,
)
from .wires import PATHS, Request, Said

GOES_ON = ("continued", "client-compacted", "retry")
# Conversations of one user that run at the same time.
AT_ONCE = 12
# The groups of the printed counts.
KINDS = ("act", "habit", "header", "api")

Known = tuple[object, ...]


class Target(Protocol):
    def send(self, user: int, request: Request, reply: Said | None) -> Answer: ...


class Judge:
    """Judges a server's decisions by the messages that a conversation really has."""

    def __init__(self, every: int = 0) -> None:
        # Requests between two printed counts; 0 prints none.
        self.every = every
        self.judged = 0
        # Users send requests at the same time.
        self.lock = Lock()
        self.said: dict[tuple[int, str], tuple[Known, ...]] = {}
        # Number of messages before the server's first reply.
        self.starts: dict[tuple[int, str], int] = {}
        self.tips: Counter[tuple[int, tuple[Known, ...]]] = Counter()
        self.counts: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
        self.wrong: list[str] = []
        self.missed: list[str] = []

    def has_tip(self, user: int, history: tuple[Known, ...]) -> bool:
        """Return whether a conversation ends with the last reply of this history."""
        last = max(
            (place for place, each in enumerate(history) if each[0] == "assistant"),
            default=-1,
        )
        return self.tips[user, history[: last + 1]] > 0

    def judge(self, talk: Talk, act: str, answer: Answer, *, is_copy: bool) -> None:
        history = tuple(said.known for said in talk.history)
        key = talk.user, answer.conversation
        is_right = self.is_right(key, history, answer)
        # Even where another conversation happens to end there, these are branches.
        is_other = is_copy or act in ("edit", "regenerate")
        is_wanted = not is_other and self.has_tip(talk.user, history)
        # A client's own side call is no part of the conversation.
        is_known = (answer.lineage in GOES_ON) != (act == "aside")
        line = f"{talk.name} {talk.wire} {talk.header} {talk.habits} {act}: {answer}"
        if not is_right:
            self.wrong.append(line)
        elif is_wanted and not is_known:
            self.missed.append(line)
        for group in (("header", talk.header), ("api", talk.wire), ("act", act)):
            self.count(group, is_right, is_wanted, is_known)
        for habit in talk.habits:
            self.count(("habit", habit), is_right, is_wanted, is_known)
        self.judged += 1
        if self.every and self.judged % self.every == 0:
            print_counts(self, ("header",))
            print(f"wrong: {len(self.wrong)}", *self.wrong, sep="\n", flush=True)

    def count(
        self, group: tuple[str, ...], is_right: bool, is_wanted: bool, is_known: bool
    ) -> None:
        counts = self.counts[group]
        counts["requests"] += 1
        counts["wrong"] += not is_right
        counts["wanted"] += is_wanted
        counts["known"] += is_wanted and is_known and is_right

    def is_right(
        self, key: tuple[int, str], history: tuple[Known, ...], answer: Answer
    ) -> bool:
        before = self.said.get(key)
        if answer.lineage == "retry":
            return before is not None and before[: len(history)] == history
        if answer.lineage in GOES_ON:
            return before is not None and history[: len(before)] == before
        if before is not None:
            return False
        if answer.lineage == "branch" and answer.parent:
            parent = key[0], answer.parent
            return count_shared(self.said[parent], history) > self.starts[parent]
        return True

    def note(self, talk: Talk, answer: Answer) -> None:
        """Store the conversation's messages; without a reply, it ends in a question."""
        key = talk.user, answer.conversation
        if key in self.said:
            self.tips[key[0], self.said[key]] -= 1
        self.said[key] = tuple(said.known for said in talk.history)
        self.starts[key] = talk.start
        self.tips[key[0], self.said[key]] += 1


def count_shared(one: Sequence[Known], other: Sequence[Known]) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(one), len(other)))


class Play:
    """Plays the conversations of one user in turns, one request at a time."""

    def __init__(self, target: Target, judge: Judge, model: str, fails: bool) -> None:
        self.target = target
        self.judge = judge
        self.model = model
        # Whether the target can let an upstream fail.
        self.fails = fails

    def play(self, talks: Sequence[Talk], random: Random) -> None:
        running: list[Talk] = []
        waiting = list(talks)
        while running or waiting:
            while waiting and len(running) < AT_ONCE:
                running.append(self.begin(waiting.pop(), running))
            talk = random.choice(running)
            if talk.acts:
                self.take(talk, talk.acts.pop(0), running)
            else:
                running.remove(talk)

    def begin(self, talk: Talk, others: Sequence[Talk]) -> Talk:
        self.send(talk, "begin", others)
        return talk

    def take(self, talk: Talk, act: str, running: list[Talk]) -> None:
        if act == "branch":
            fork = talk.fork(f"{talk.name}-copy-{talk.sent}")
            take_step(fork, "append")
            self.send(fork, act, running, is_copy=True)
            running.append(fork)
            return
        if act in ("aside", "summarise"):
            return self.ask_aside(talk, act, running)
        take_step(talk, act)
        if act == "retry":
            self.send_again(talk, running)
        else:
            self.send(talk, act, running)

    def ask_aside(self, talk: Talk, act: str, others: Sequence[Talk]) -> None:
        """Send a side call, after the results of pending tool calls."""
        while talk.history[-1].calls:
            take_step(talk, "append")
            self.send(talk, "append", others)
        is_summary = act == "summarise"
        ask = SUMMARISE if is_summary else talk.random.choice(ASIDES)
        aside = talk.step_aside(ask)
        self.send(aside, "aside", others)
        # So no other reply of the conversation is equal by chance.
        talk.sent = aside.sent
        if is_summary:
            forget_beginning(talk, SUMMARY + aside.history[-1].text)
            take_step(talk, "append")
            self.send(talk, act, others)

    def send(
        self, talk: Talk, act: str, others: Sequence[Talk], *, is_copy: bool = False
    ) -> None:
        request = talk.write_request(others, self.model)
        reply = make_reply(talk.history, Random(f"{talk.name} {talk.sent}"))
        self.exchange(talk, act, request, reply, is_copy=is_copy)

    def exchange(
        self, talk: Talk, act: str, request: Request, reply: Said, *, is_copy: bool
    ) -> None:
        answer = self.target.send(talk.user, request, reply)
        with self.judge.lock:
            self.judge.judge(talk, act, answer, is_copy=is_copy)
            talk.answer(answer.reply or reply)
            self.judge.note(talk, answer)

    def send_again(self, talk: Talk, others: Sequence[Talk]) -> None:
        """Send a request twice: the first one fails, or its answer is lost."""
        request = talk.write_request(others, self.model)
        reply = make_reply(talk.history, Random(f"{talk.name} {talk.sent}"))
        is_lost = not self.fails or talk.random.random() < 0.5
        first = self.target.send(talk.user, request, reply if is_lost else None)
        with self.judge.lock:
            self.judge.judge(talk, "append", first, is_copy=False)
            self.judge.note(talk, first)
        headers = {**request.headers, "x-stainless-retry-count": "1"}
        again = replace(request, headers=headers if is_lost else request.headers)
        self.exchange(talk, "retry", again, reply, is_copy=False)


def run_talks(
    target: Target,
    count: int,
    *,
    seed: int = 1,
    people: int = 2,
    wires: Sequence[str] = tuple(PATHS),
    model: str = "gpt-5.4-mini",
    every: int = 0,
) -> Judge:
    """Run `count` conversations of each user, all users at once.

    The users of each pair send equal messages.
    """
    judge = Judge(every)
    play = Play(target, judge, model, fails=isinstance(target, MemoryTarget))

    def play_user(user: int) -> None:
        own = seed + user // 2
        play.play([*make_talks(count, own, user, wires)], Random(own))

    with ThreadPoolExecutor(people) as pool:
        list(pool.map(play_user, range(people)))
    return judge


def print_counts(judge: Judge, kinds: Sequence[str] = KINDS) -> None:
    print(f"{'':28}{'requests':>10}{'wrong':>8}{'went on':>9}{'known':>8}{'share':>9}")
    for (kind, name), counts in sorted(judge.counts.items()):
        if kind not in kinds:
            continue
        wanted, known = counts["wanted"], counts["known"]
        share = f"{known / wanted:9.2%}" if wanted else ""
        numbers = f"{counts['requests']:10}{counts['wrong']:8}{wanted:9}{known:8}"
        print(f"{kind + ' ' + name:28}{numbers}{share}")


def run_site_talks(given: argparse.Namespace, **chosen: Any) -> Judge:
    """Run the conversations through a site of its own, with its audit."""
    is_postgres = given.database == "postgresql"
    with run_site(given.people, is_postgres=is_postgres) as (target, site):
        judge = run_talks(target, given.conversations, **chosen)
        print(f"{cpu_of_tree(site.process.pid):.0f} s of processor time of the site")
        print(site.manage("audit").strip())
    return judge


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.endpoint.identity", description=__doc__
    )
    parser.add_argument("--conversations", type=int, default=1000, help="of each user")
    parser.add_argument("--people", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--http", action="store_true", help="a site of its own")
    parser.add_argument("--database", choices=("sqlite", "postgresql"))
    parser.add_argument("--base-url", help="with /v1")
    parser.add_argument("--key", action="append", default=[])
    parser.add_argument("--api", action="append", choices=PATHS)
    # The names of the options in earlier releases.
    old = {"default": argparse.SUPPRESS, "help": argparse.SUPPRESS}
    parser.add_argument("--talks", type=int, dest="conversations", **old)
    parser.add_argument("--wire", action="append", choices=PATHS, dest="api", **old)
    parser.add_argument("--model", default="gpt-5.4-mini")
    parser.add_argument("--show", type=int, default=10, help="so many lines of each")
    parser.add_argument("--every", type=int, default=0, help="counts on the way")
    given = parser.parse_args()
    people = len(given.key) or given.people
    chosen = {"seed": given.seed, "people": people, "model": given.model}
    chosen["every"] = given.every
    chosen["wires"] = given.api or tuple(PATHS)
    if given.http:
        judge = run_site_talks(given, **chosen)
    else:
        url = given.base_url
        target = HttpTarget(url, given.key) if url else MemoryTarget()
        judge = run_talks(target, given.conversations, **chosen)
    print_counts(judge)
    for title, lines in (("wrong", judge.wrong), ("missed", judge.missed)):
        print(f"\n{title}: {len(lines)}", *lines[: given.show], sep="\n")
    return 1 if judge.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
