"""Conversations made for tests, in the way the site makes them but without turns."""

from django.db import connection
from django.db.models import QuerySet

from memory import context, transcript, versions
from memory.models import ModelCall, Summary


def say(conversation, text):
    """One message and its reply, with the request that the reply came from."""
    conversation.refresh_from_db()
    message, _ = transcript.append_user_message(
        conversation, text=text, client_id=f"id-{conversation.next_seq}"
    )
    built = context.build(conversation, newest=message, model="m")
    context.keep_prompts(conversation)
    reply = transcript.append_reply(
        conversation, seq=message.seq + 1, text=f"Reply to: {text}"
    )
    return ModelCall.objects.create(
        conversation=conversation,
        purpose=ModelCall.Purpose.REPLY,
        message=reply,
        refs=built.refs,
        sha256=built.sha256,
        model="m",
        tokens_estimated=built.tokens,
    )


def talk(conversation, count):
    return [say(conversation, f"Text {n}") for n in range(count)]


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
    summary = versions.append(
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
