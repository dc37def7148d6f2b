"""What a long conversation costs: the split page, the right pane, the context and the
fold plan for 100 and for 10,000 messages, in one run on a SQLite file of its own.

Prints milliseconds (median of 7) and the ratio long / short.
"""

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

folder = tempfile.TemporaryDirectory()
os.environ["DEBUG"] = "true"
os.environ["DATABASE_URL"] = f"sqlite:///{Path(folder.name) / 'bench.sqlite3'}"
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsite.settings")

import django  # noqa: E402

django.setup()

from django.contrib.auth import get_user_model  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.test import Client  # noqa: E402

from chatsite.chat.models import Turn  # noqa: E402
from memory import context, fold_plan, transcript, versions  # noqa: E402
from memory.models import Conversation, Message, Summary  # noqa: E402

RUNS = 7
TEXT = "A sentence of a usual length about nothing much, 42 words or fewer. " * 3


def make(owner: object, size: int) -> Conversation:
    """`size` messages in whole turns, all but the last 20 folded."""
    conversation = transcript.create(owner, title=f"{size} messages")
    roles = (Message.Role.USER, Message.Role.ASSISTANT)
    rows = [
        Message(
            conversation=conversation,
            seq=seq,
            role=roles[(seq - 1) % 2],
            text=f"#{seq} {TEXT}",
            tokens=60,
        )
        for seq in range(1, size + 1)
    ]
    rows = Message.objects.bulk_create(rows)
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
    versions.append(
        conversation,
        first_seq=1,
        last_seq=size - 20,
        text="They talked.",
        status=Summary.Status.ACTIVE,
    )
    return conversation


def measure(act: Callable[[], object]) -> float:
    times = []
    for _ in range(RUNS):
        started = time.perf_counter()
        act()
        times.append((time.perf_counter() - started) * 1000)
    return statistics.median(times)


def get(client: Client, path: str) -> None:
    response = client.get(path)
    if response.status_code != 200:
        raise RuntimeError(f"{path} answered {response.status_code}")


def main() -> None:
    call_command("migrate", verbosity=0)
    owner = get_user_model().objects.create_user("bench")
    client = Client(headers={"host": "127.0.0.1"})
    client.force_login(owner)
    results: dict[str, list[float]] = {}
    for size in (100, 10_000):
        conversation = make(owner, size)
        path = f"/c/{conversation.uuid}/"
        acts = {
            "split page": lambda path=path: get(client, path),
            "right pane": lambda path=path: get(client, f"{path}context/"),
            "context": lambda each=conversation: context.build(each),
            "fold plan": lambda each=conversation: fold_plan.prepare(
                each.pk, "", lambda _: None, None, force=False
            ),
        }
        for name, act in acts.items():
            results.setdefault(name, []).append(measure(act))
    print(f"{'':12} {'100':>9} {'10,000':>9} {'ratio':>7}")
    for name, (short, long) in results.items():
        print(f"{name:12} {short:6.1f} ms {long:6.1f} ms {long / short:6.2f}")


if __name__ == "__main__":
    main()
    folder.cleanup()
