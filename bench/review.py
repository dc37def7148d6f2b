"""What the pages of staff cost when there is much to review: 100,000 summaries and
1,000,000 messages in 1,000 conversations, and one of 10,000 messages and 2,000
versions; on SQLite and on PostgreSQL, each a database of its own. Prints milliseconds,
the median of 7.

    python -m bench.review [sqlite|postgresql ...]
"""

import itertools
import re
import statistics
import time
from collections.abc import Callable, Iterable, Iterator

from . import databases

RUNS = 7
CONVERSATIONS, MESSAGES, VERSIONS = 1_000, 1_000, 100
LONG_MESSAGES, LONG_VERSIONS = 10_000, 2_000
PEOPLE = 200
# Messages that no summary covers yet.
WINDOW = 40
TEXT = "We pay {} euros on 1{} May at the harbour, as Anna said in the morning. " * 4
WORDS = re.findall(
    r"\w+",
    """
    they pay Anna Berlin harbour station museum bridge garden market train early
    late rain coffee order ticket because again never always hotel night budget
    euros
    """,
)


def summary_of(version: int) -> str:
    """Two thousand characters, and no two versions alike."""
    lines = (
        " ".join(WORDS[(version * 7 + line * k) % len(WORDS)] for k in range(1, 12))
        for line in range(1, 29)
    )
    return "\n".join(f"- {line} {version}" for line in lines)


class Filler:
    """Rows as the site would have left them, in bulk."""

    def __init__(self) -> None:
        from django.contrib.auth import get_user_model

        User = get_user_model()  # noqa: N806
        people = (
            User(username=f"person-{n:05}", email=f"p{n}@example.org")
            for n in range(PEOPLE)
        )
        self.people = User.objects.bulk_create(people)
        self.staff = User.objects.create_superuser("staff")

    def fill(self) -> None:
        from memory.models import Conversation

        made = Conversation.objects.bulk_create(
            Conversation(
                owner=self.people[n % PEOPLE],
                title=f"Conversation {n}",
                next_seq=MESSAGES + 1,
            )
            for n in range(CONVERSATIONS)
        )
        for n, conversation in enumerate(made):
            self.messages(conversation, MESSAGES)
            is_layered = n % 2
            make = self.layered if is_layered else self.running
            self.versions(conversation, make(MESSAGES, VERSIONS))
        self.long = Conversation.objects.create(
            owner=self.people[0], title="Long", next_seq=LONG_MESSAGES + 1
        )
        self.messages(self.long, LONG_MESSAGES)
        self.versions(self.long, self.layered(LONG_MESSAGES, LONG_VERSIONS))
        self.reply()

    def messages(self, conversation: object, count: int) -> None:
        from memory.models import Message

        roles = (Message.Role.USER, Message.Role.ASSISTANT)
        rows = (
            Message(
                conversation=conversation,
                seq=seq,
                role=roles[(seq - 1) % 2],
                text=TEXT.format(*(seq, seq % 10) * 4),
                tokens=80,
            )
            for seq in range(1, count + 1)
        )
        while batch := list(itertools.islice(rows, 2_000)):
            Message.objects.bulk_create(batch)

    def running(self, messages: int, versions: int) -> Iterator[dict]:
        """Each covers all messages before it; some have failed."""
        step = messages // (versions + 1)
        made = 0
        for version in range(1, versions + 1):
            failed = version % 25 == 0 and version < versions
            yield {
                "version": version,
                "first_seq": 1,
                "last_seq": step * version,
                "generation": version,
                "status": "failed"
                if failed
                else "active"
                if version == versions
                else "superseded",
                "preset": "langgraph",
                "kind": "messages",
                "sources": [made] if made else [],
            }
            made = made if failed else version

    def layered(self, messages: int, versions: int) -> list[dict]:
        """Like carrying in a counter: five of a level become one of the next."""
        made, waiting = [], {}
        for version in range(1, versions + 1):
            level = next((n for n, group in waiting.items() if len(group) == 5), -1)
            group = waiting.pop(level, [])
            for source in group:
                source["status"] = "superseded"
            made.append(
                {
                    "version": version,
                    "level": level + 1,
                    "preset": "layered",
                    "kind": "summary_tokens" if group else "tokens",
                    "status": "active",
                    "sources": [source["version"] for source in group],
                }
            )
            waiting.setdefault(level + 1, []).append(made[-1])
        _spread(made, messages - WINDOW)
        return made

    def versions(self, conversation: object, values: Iterable[dict]) -> None:
        from memory.models import Summary

        rows, sources = [], {}
        for each in values:
            version = each["version"]
            sources[version] = each.pop("sources")
            kind = each.pop("kind")
            failed = each["status"] == "failed"
            rows.append(
                Summary(
                    conversation=conversation,
                    text="" if failed else summary_of(version),
                    flags={"unsupported": [str(version)]} if version % 10 == 7 else {},
                    trigger={"kind": kind, "value": 4100, "limit": 4000},
                    policy_hash="0" * 64,
                    model="m",
                    tokens_before=4000,
                    tokens_after=900,
                    error="timeout" if failed else "",
                    **each,
                )
            )
        Summary.objects.bulk_create(rows, batch_size=500)
        known = {row.version: row for row in rows}
        link = Summary.folded_from.through
        link.objects.bulk_create(
            link(from_summary=known[made], to_summary=known[source])
            for made, found in sources.items()
            for source in found
        )

    def reply(self) -> None:
        """One more turn of the long conversation, and the requests of many before."""
        from django.db import transaction

        from memory import context, transcript
        from memory.models import ModelCall

        message, _new = transcript.append_user_message(
            self.long, text="And what does Anna want?", client_id="bench"
        )
        built = context.build(self.long, newest=message, model="m")
        with transaction.atomic():
            context.keep_prompts(self.long, built)
        self.last = transcript.append_reply(self.long, seq=message.seq + 1, text="Tea.")
        values = {"refs": built.refs, "sha256": built.sha256, "model": "m"}
        values |= {"tokens_estimated": built.tokens, "purpose": "reply"}
        asked = list(self.long.messages.filter(role="assistant")[: LONG_MESSAGES // 2])
        ModelCall.objects.bulk_create(
            [
                ModelCall(conversation=self.long, message=row, **values)
                for row in [*asked, self.last]
            ],
            batch_size=500,
        )


def _spread(made: list[dict], messages: int) -> None:
    """Give the segments the messages, and the others what they are made of."""
    segments = [values for values in made if not values["sources"]]
    known = {values["version"]: values for values in made}
    for n, values in enumerate(segments):
        values["first_seq"] = messages * n // len(segments) + 1
        values["last_seq"] = messages * (n + 1) // len(segments)
    for values in made:
        if sources := values["sources"]:
            values["first_seq"] = known[sources[0]]["first_seq"]
            values["last_seq"] = known[sources[-1]]["last_seq"]


def pages(filler: Filler) -> dict[str, str]:
    from memory.models import Summary

    conversation = filler.people[3].conversations.first()
    listed, one = "/admin/memory/summary/", "/admin/memory/conversation/"
    short, long = (
        f"{one}{conversation.pk}/timeline/",
        f"{one}{filler.long.pk}/timeline/",
    )
    last = Summary.objects.order_by("-pk").first().pk
    return {
        "summaries": listed,
        "summaries, page 1,900": f"{listed}?p=1900",
        "summaries, oldest first": f"{listed}?o=12",
        "summaries, past 7 days": f"{listed}?created_at__gte=2020-01-01%2000:00:00Z",
        "summaries, trigger": f"{listed}?trigger=summary_tokens",
        "summaries, status failed": f"{listed}?status__exact=failed",
        "summaries, facts unsupported": f"{listed}?flag=unsupported",
        "summaries, rewritten": f"{listed}?flag=rewritten",
        "summaries, gap": f"{listed}?flag=gap",
        "summaries, level": f"{listed}?level=1",
        "summaries, a level that none has": f"{listed}?level=more",
        "summaries, preset": f"{listed}?preset=layered",
        "summaries, five filters": f"{listed}?preset=layered&level=1&flag=unsupported"
        "&status__exact=active&trigger=summary_tokens",
        "summaries, five, page 50": f"{listed}?preset=langgraph&level=0"
        "&status__exact=superseded&trigger=messages&flag=rewritten&p=50",
        "summaries of an id": f"{listed}?q={conversation.uuid}",
        "summaries of a person": f"{listed}?q=person-00003",
        "summaries of 100 people": f"{listed}?q=person-000",
        "summaries of an address": f"{listed}?q=p5@example.org",
        "summaries of a name that none has": f"{listed}?q=stranger",
        "one summary": f"{listed}{last}/change/",
        "timeline, 1,000 messages": short,
        "timeline, 10,000 messages": long,
        "timeline, version 1,000": f"{long}?v=1000",
        "timeline, two versions": f"{long}?a=4&b=1998&v=1998",
        "transcript": f"{long}?tab=transcript",
        "transcript, page 100": f"{long}?tab=transcript&page=100",
        "model's view": f"{long}?tab=view",
        "raw": f"{long}?tab=raw",
        "log": f"{long}?tab=log",
        "log, page 50": f"{long}?tab=log&page=50",
        "request": f"{one}{filler.long.pk}/request/{filler.last.seq}/",
    }


def measure(action: Callable[[], object]) -> str:
    times = databases.measure(action, RUNS)
    return f"{statistics.median(times):7.0f} ms ({min(times):.0f} to {max(times):.0f})"


def time_once(name: str, action: Callable[[], object]) -> None:
    started = time.perf_counter()
    action()
    print(f"{name:32} {time.perf_counter() - started:8.1f} s", flush=True)


def report() -> None:
    from django.test import Client

    filler = Filler()
    time_once("filled in", filler.fill)
    databases.analyse()
    client = Client()
    client.force_login(filler.staff)
    for name, path in pages(filler).items():

        def get(path: str = path) -> None:
            response = client.get(path)
            if response.status_code != 200:
                raise RuntimeError(f"{path} answered {response.status_code}")

        get()
        print(f"{name:32} {measure(get)}", flush=True)
    audit()


def audit() -> None:
    from chatsite.turns.audit import find_missing_messages
    from memory.integrity import audit
    from memory.models import Message

    for name, find in (
        ("audit, all signatures", audit.find_broken_signatures),
        ("audit, missing versions", audit.find_missing_versions),
        ("audit, missing messages", find_missing_messages),
    ):
        time_once(name, lambda find=find: list(find()))
    row, field = Message.objects.last(), Message._meta.get_field("signature")
    took = measure(lambda: [field.make(row) for _ in range(1000)])
    print(f"{'1,000 signatures':32} {took}")


if __name__ == "__main__":
    databases.run("bench.review", report)
