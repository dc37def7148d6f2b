"""A long conversation in a small window, through keys in *bound*.

It counts what the provider refuses, which bodies are rebuilt from the store, and what
the provider can cache.

Usage: python -m bench.endpoint.bounded [--turns 300] [--window 8000] [--seed 1]
       [--api chat]
"""

import argparse
import hashlib
import os
import sys
import tempfile
from itertools import product
from pathlib import Path

import httpx

from tests.fakes.upstream import SUMMARY_MARK
from tests.servers import Site

from .long_talk import LongTalk
from .strict import Shares, StrictUpstream, read_messages

MARK = SUMMARY_MARK.encode()
# Words of a question and of an answer: longer ones make a larger share of a small
# window new in each request.
WORDS = ((30, 45), (50, 60))
PATHS = {
    "chat": "/v1/chat/completions",
    "messages": "/v1/messages",
    "responses": "/v1/responses",
}
# Requests between two lines of progress.
OFTEN = 60


def make_environment(folder: Path, provider: StrictUpstream) -> dict[str, str]:
    return {
        "DEBUG": "true",
        "SECRET_KEY": "of a bench alone",
        "DATABASE_URL": f"sqlite:///{folder / 'bench.sqlite3'}",
        "OPENAI_BASE_URL": provider.url,
        "ANTHROPIC_BASE_URL": provider.url.removesuffix("/v1"),
        "OPENAI_API_KEY": "sk-bench",
        "CHAT_MODEL": "ok",
        "CONTEXT_WINDOW": str(provider.window),
        # Equal to the client's own limit of a reply.
        "REPLY_RESERVE": "500",
        "MESSAGES_PER_MINUTE": "100000",
        "SUMMARIES_PER_MINUTE": "100000",
        "TOKENS_PER_DAY": "0",
    }


def play(site: Site, key: str, talk: LongTalk) -> list[str]:
    """Play the conversation; return the hashes that the site reports of sent bodies."""
    hashes = []
    headers = {"authorization": f"Bearer {key}"}
    with httpx.Client(timeout=120, headers=headers) as client:
        for number, body in enumerate(talk.play()):
            if number % OFTEN == 0:
                print(f"{talk.wire}: {number} sent", file=sys.stderr, flush=True)
            answer = client.post(site.url + PATHS[talk.wire], content=body)
            answer.raise_for_status()
            talk.take(answer.content)
            hashes.append(answer.headers["x-windowpane-request-sha256"])
    return hashes


def report(site: Site, provider: StrictUpstream, key: str, talk: LongTalk) -> None:
    hashes = play(site, key, talk)
    sent = [each.raw for each in provider.requests if MARK not in each.raw]
    known = [hashlib.sha256(raw).hexdigest() for raw in sent]
    bounded = Shares([*map(read_messages, sent)])
    direct = Shares([*map(read_messages, talk.bodies)])
    lines = {
        "turns, requests": (talk.turns, len(sent)),
        "requests for summaries": len(provider.requests) - len(sent),
        "refused as too long": provider.too_long,
        "parted calls and results": provider.orphans,
        "changed signatures": provider.changed,
        "largest body of the client, in bytes": max(map(len, talk.bodies)),
        "largest body that was sent": max(map(len, sent)),
        "answers name the hash of what was sent": known == hashes,
        "can be cached, bounded": f"{bounded.cached / bounded.total:.1%}",
        "can be cached, direct": f"{direct.cached / direct.total:.1%}",
        # New content is the same in both, so it cancels out.
        "lost at compactions": f"{(bounded.fresh - direct.fresh) / bounded.total:.1%}",
        "audit, which rebuilds every body": site.manage("audit").strip(),
    }
    print(
        f"{talk.wire}:",
        *(f"  {k}: {v}" for k, v in lines.items()),
        sep="\n",
        flush=True,
    )


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    for name, usual in (("turns", 300), ("window", 8000), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--api", action="append", choices=PATHS)
    # The name of the option in earlier releases.
    old = {"dest": "api", "default": argparse.SUPPRESS, "help": argparse.SUPPRESS}
    parser.add_argument("--wire", action="append", choices=PATHS, **old)
    return parser.parse_args()


def main(turns: int, window: int, seed: int, api: list[str] | None) -> None:
    os.environ.setdefault("DEBUG", "true")
    for name, (asked, said) in product(api or PATHS, WORDS):
        with (
            tempfile.TemporaryDirectory() as folder,
            StrictUpstream(window, said, seed) as provider,
        ):
            site = Site(make_environment(Path(folder), provider))
            site.manage("migrate", "--verbosity", "0")
            site.manage("create_user", "alice", "a-long-password-1")
            key = site.manage("create_key", "alice", "--mode", "bound").strip()
            print(f"{asked} words to ask, {said} to answer;", end=" ", flush=True)
            with site:
                report(site, provider, key, LongTalk(name, turns, asked, seed))


if __name__ == "__main__":
    main(**vars(read_options()))
