"""Costs of a long conversation on the server: the home page, the split page, its parts
and its searches, for 100 and for 10,000 messages beside 50 short conversations, on
SQLite and on PostgreSQL.

Prints milliseconds (medians of 7), the queries of each, and the ratio long / short.
Processor time of this process comes first: other load changes it less. PostgreSQL's
own share is only in the time that passed, which follows in brackets.
"""

import statistics
import time
from collections.abc import Callable
from itertools import pairwise

from . import databases

RUNS = 7
SIZES = (100, 10_000)
WINDOW = 20
SUMMARIES = 6
BESIDE = 50
TEXT = (
    "A sentence of a usual length about nothing much, 42 words or fewer, with "
    "**emphasis** and `code` where it was wanted. The ferry to pier {n} takes "
    "{minutes} minutes, says captain Nemo{n}, and costs {minutes}.50."
)


def make(owner: object, size: int, title: str = "") -> object:
    """`size` messages in whole turns, indexed, all but the last 20 compacted."""
    from chatsite.turns.models import Turn
    from memory import transcript
    from memory.models import Conversation, Message, RecallEntry
    from memory.search import recall

    conversation = transcript.create_conversation(
        owner, title=title or f"{size} messages"
    )
    roles = (Message.Role.USER, Message.Role.ASSISTANT)
    rows = Message.objects.bulk_create(
        Message(
            conversation=conversation,
            seq=seq,
            role=roles[(seq - 1) % 2],
            text=TEXT.format(n=seq, minutes=seq % 97),
            tokens=60,
        )
        for seq in range(1, size + 1)
    )
    RecallEntry.objects.bulk_create(
        RecallEntry(**recall.describe_entry(row)) for row in rows
    )
    Turn.objects.bulk_create(
        Turn(
            conversation=conversation,
            user_message=asked,
            reply=reply,
            reply_seq=reply.seq,
            state=Turn.State.DONE,
            text=reply.text,
        )
        for asked, reply in zip(rows[::2], rows[1::2], strict=True)
    )
    Conversation.objects.filter(pk=conversation.pk).update(next_seq=size + 1)
    if size > WINDOW:
        compact(conversation, size - WINDOW)
    return conversation


def compact(conversation: object, last: int) -> None:
    """Several summaries, as layers leave them."""
    from memory import versions
    from memory.models import Summary

    ends = [last * number // SUMMARIES // 2 * 2 for number in range(SUMMARIES + 1)]
    ends = sorted(set(ends))  # a short one has fewer
    for first, end in pairwise(ends):
        versions.append_version(
            conversation,
            first_seq=first + 1,
            last_seq=end,
            text="They talked about ferries. " * 20,
            model="made",
            status=Summary.Status.ACTIVE,
        )


def measure(action: Callable[[], object]) -> tuple[float, float, int]:
    """Milliseconds of processor time, those that passed, and queries; the first run
    only warms up."""
    from django.db import connection

    queries = []

    def count(execute: Callable[..., object], *args: object) -> object:
        queries.append(args[0])
        return execute(*args)

    with connection.execute_wrapper(count):
        action()
    spent, passed = [], []
    for _ in range(RUNS):
        started = time.process_time()
        passed += databases.measure(action, 1)
        spent.append((time.process_time() - started) * 1000)
    return statistics.median(spent), statistics.median(passed), len(queries)


def get(client: object, path: str) -> None:
    response = client.get(path)
    if response.status_code != 200:
        raise RuntimeError(f"{path} answered {response.status_code}")


def actions_on(client: object, conversation: object) -> dict[str, Callable[[], object]]:
    from chatsite.live import fragments
    from memory import context
    from memory.compaction import preparation
    from memory.leases import Claim

    path = f"/c/{conversation.uuid}/"
    middle = list(conversation.turns.order_by("id").values_list("id", flat=True))
    earlier = f"{path}messages/?before={middle[len(middle) // 2]}"
    seq = conversation.messages.count() // 2

    def find(words: str) -> Callable[[], object]:
        return lambda: get(client, f"{path}memory/find/?q={words}")

    def search(words: str) -> Callable[[], object]:
        return lambda: get(client, f"/?q={words}")

    return {
        "home page with the list": lambda: get(client, "/"),
        "split page": lambda: get(client, path),
        "split page at a message": lambda: get(client, f"{path}?at={seq}"),
        "earlier page": lambda: get(client, earlier),
        "right pane": lambda: get(client, f"{path}context/"),
        "sync of a socket": lambda: list(fragments.LivePage().sync(conversation)),
        "context": lambda: context.build_request_context(conversation),
        "compaction plan": lambda: preparation.prepare_job(
            Claim(conversation.pk, ""), lambda _: None, None, None, force=False
        ),
        "find: a rare word": find(f"nemo{seq}"),
        "find: in every message": find("ferry"),
        "find: several words": find("captain+minutes+pier+harbour"),
        "find: nothing": find("zzqx+wwvy"),
        "search all: a rare word": search(f"nemo{seq}"),
        "search all: every message": search("ferry"),
        "search all: nothing": search("zzqx+wwvy"),
    }


def report() -> None:
    from django.contrib.auth import get_user_model
    from django.test import Client

    results: dict[str, list[tuple[float, float, int]]] = {}
    for size in SIZES:
        owner = get_user_model().objects.create_user(f"bench-{size}")
        client = Client()
        client.force_login(owner)
        for number in range(BESIDE):
            make(owner, 2, f"beside {number}")
        conversation = make(owner, size)
        for name, action in actions_on(client, conversation).items():
            results.setdefault(name, []).append(measure(action))
    heads = "".join(f"{f'{size:,} messages':>21}" for size in SIZES)
    print(f"{'':26}{heads}   ratio  queries")
    for name, sizes in results.items():
        times = "".join(
            f"{spent:9.1f} ms ({passed:5.1f})" for spent, passed, _ in sizes
        )
        ratio = sizes[1][0] / sizes[0][0]
        queries = " / ".join(str(count) for _, _, count in sizes)
        print(f"{name:26}{times} {ratio:7.2f}  {queries}")


if __name__ == "__main__":
    databases.run("bench.long_conversation", report)
