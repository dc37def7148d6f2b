"""Long files that were uploaded, and messages that have them."""

import uuid

from chatsite.features.attachments import uploads
from chatsite.features.attachments.reading import ReadFile
from chatsite.turns import commands

# Of no other sentence.
SECRET = "The vault of Marlow opens with the turquoise key of the gardener."


def long_text(*told, chars=170_000):
    """A text of so many characters, with these sentences spread over it."""
    lines, told = [], [*told]
    size, step, due = 0, chars // (len(told) + 1), chars // (len(told) + 1)
    while size < chars:
        n = len(lines)
        line = f"Entry {n}: lamp {n * 7919 % 10_007} of house {n} was looked at.\n\n"
        if told and size >= due:
            line, due = f"{told.pop(0)}\n\n", due + step
        lines.append(line)
        size += len(line)
    return "".join(lines)


def keep_long(owner, text, name="book.txt", pages=()):
    return uploads.store_upload(
        owner, ReadFile(name, "txt", len(text), text, pages=pages)
    )


def send_long(conversation, *rows, text="What is in it?", **values):
    values = {"text": text, "client_id": uuid.uuid4().hex, "run": False, **values}
    ids = [str(row.pk) for row in rows]
    return commands.send_message(conversation, attachments=ids, **values).message
