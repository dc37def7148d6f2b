"""Builders for tests: conversations as the site makes them, but without turns, and a
summariser that answers from a list."""

from asgiref.sync import async_to_sync
from django.db import connection, transaction
from django.db.models import QuerySet
from langchain_core.messages import AIMessage

from memory import context, prompts, transcript, versions
from memory.compaction import compactor
from memory.engine.summaries.material import read_request
from memory.integrity import audit
from memory.models import ModelCall, Summary
from memory.view import places


def ask(conversation, text="What now?", client_id=None):
    """A user's message, without a reply."""
    conversation.refresh_from_db()
    client_id = client_id or f"id-{conversation.next_seq}"
    row, _ = transcript.append_user_message(
        conversation, text=text, client_id=client_id
    )
    return row


def reply_to(message, text):
    return transcript.append_reply(message.conversation, seq=message.seq + 1, text=text)


def call_tools(message, *calls, text=""):
    """The model's calls after `message`, and their results, in rows of their own; a
    call is a name and its result, None where none came. The number of the first row."""
    conversation = message.conversation
    first = transcript.reserve_numbers(conversation, 1 + len(calls))
    asked = [
        {"name": name, "args": {"q": f"{name} {first}"}, "id": f"call_{first}_{place}"}
        for place, (name, _) in enumerate(calls)
    ]
    transcript.append_reply(conversation, seq=first, text=text, tool_calls=asked)
    for place, (_, result) in enumerate(calls):
        if result is not None:
            transcript.append_result(
                conversation,
                seq=first + 1 + place,
                call_id=asked[place]["id"],
                text=result,
            )
    return first


def come_late(conversation, asked, text="Here it is.", place=0):
    """A result of a call of message `asked` that came after its answer."""
    return transcript.append_result(
        conversation,
        seq=transcript.reserve_numbers(conversation, 1),
        call_id=f"call_{asked}_{place}",
        text=text,
        late_for=asked,
    )


def say_with_tools(conversation, text, *calls):
    """A message, calls of tools and the reply."""
    message = ask(conversation, text)
    call_tools(message, *calls)
    seq = transcript.reserve_numbers(conversation, 1)
    return transcript.append_reply(conversation, seq=seq, text=f"Reply to: {text}")


@transaction.atomic
def record(conversation, built, reply=None, model="m", **reported):
    """The request of a built context, as it is stored."""
    prompts.keep_texts(conversation, built.texts)
    return ModelCall.objects.create(
        conversation=conversation,
        purpose=ModelCall.Purpose.REPLY,
        message=reply,
        refs=built.refs,
        sha256=built.sha256,
        model=model,
        tokens_estimated=built.tokens,
        **reported,
    )


def say(conversation, text, **reported):
    """One message and its reply, with the request that the reply came from, and what
    its provider reported."""
    message = ask(conversation, text)
    built = context.build_request_context(conversation, newest=message, model="m")
    reply = reply_to(message, f"Reply to: {text}")
    return record(conversation, built, reply, **reported)


def talk(conversation, count):
    return [say(conversation, f"Text {n}") for n in range(count)]


def add_turns(conversation, count, *, words=8):
    """Messages and replies without requests, each with its number in it."""
    for _ in range(count):
        number = conversation.messages.count()
        text = f"Message {number} says " + "word " * words
        message = ask(conversation, text, f"c{number}")
        reply_to(message, f"Reply {number}. " + "word " * words)


class Recorder:
    """A summariser's model that answers from a list, or always the same."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.requests = []
        self.cache_keys = []

    async def __call__(self, messages, *, schema=None, cache_key=""):
        self.requests.append(messages)
        self.cache_keys.append(cache_key)
        answer = self.answers.pop(0) if self.answers else "They talked."
        if isinstance(answer, Exception):
            raise answer
        if callable(answer):
            answer = await answer()
        return AIMessage(
            answer,
            usage_metadata={"input_tokens": 50, "output_tokens": 5, "total_tokens": 55},
            response_metadata={"finish_reason": "stop", "attempts": 1},
        )

    @property
    def read(self):
        """The numbers of the messages in each request; a merge has none."""
        documents = list(map(read_request, self.requests))
        return [[m["n"] for m in d["messages"]] for d in documents if "messages" in d]


async def run_compaction(conversation, *answers, **options):
    """The outcome of the compaction job with these answers, or with a Recorder."""
    recorder = answers[0] if answers and isinstance(answers[0], Recorder) else None
    summariser = compactor.Summariser("m", recorder or Recorder(*answers))
    return await compactor.compact_conversation(conversation.pk, summariser, **options)


def compact(conversation, *answers, **options):
    """Compact in a test that is not async; return the recorder."""
    recorder = Recorder(*answers)
    async_to_sync(run_compaction)(conversation, recorder, **options)
    return recorder


def in_force(conversation):
    rows = versions.active_summaries(conversation)
    return [(row.version, row.first_seq, row.last_seq, row.text) for row in rows]


def window(conversation):
    return context.build_request_context(conversation).refs["window"]


def check_places(conversation):
    """Check the number of messages in each location; none is lost, and the audit finds
    nothing.
    """
    counts = places.count_places(conversation)
    assert "lost" not in counts
    assert sum(counts.values()) == conversation.messages.count()
    broken = [
        each for each in audit.check_memory(hashes=False) if each.code[:2] != "R8"
    ]
    assert broken == []
    return counts


def summarise(conversation, first, last, *, replaces=(), **fields):
    """A version over messages `first`..`last`, with the call that made it."""
    values = {
        "text": f"What {first} to {last} said.",
        "status": Summary.Status.ACTIVE,
        "trigger": {"kind": "messages", "value": 7, "limit": 7},
        "model": "m",
        "policy_hash": "0" * 64,
        **fields,
    }
    summary = versions.append_version(
        conversation, replaces=replaces, first_seq=first, last_seq=last, **values
    )
    ModelCall.objects.create(
        conversation=conversation,
        purpose=ModelCall.Purpose.SUMMARY,
        summary=summary,
        sha256="0" * 64,
        model="m",
        tokens_estimated=1,
        error=summary.error,
    )
    return summary


def plant(row, **values):
    """Change a row behind the back of the code that guards it."""
    unguarded(type(row).objects.filter(pk=row.pk)).update(**values)


def unguarded(rows):
    """The rows as SQL by hand reaches them, past the code that guards them."""
    return QuerySet(rows.model).filter(pk__in=[row.pk for row in rows])


def drop_unique(model, *names):
    """Take unique constraints away until the end of the test's transaction."""
    table = model._meta.db_table
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            for name in names:
                cursor.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}")
            return
        # SQLite can only drop them together with the table.
        cursor.execute(f"CREATE TABLE loose AS SELECT * FROM {table}")  # noqa: S608
        cursor.execute(f"DROP TABLE {table}")
        cursor.execute(f"ALTER TABLE loose RENAME TO {table}")
        cursor.execute(f"CREATE UNIQUE INDEX loose_{table} ON {table} (id)")
