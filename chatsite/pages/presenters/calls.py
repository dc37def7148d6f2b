"""Calls of tools and their results in the rows of messages, as texts for people."""

import json
import re
from typing import Any

from django.db.models import Case, F, Q, QuerySet, TextField, When
from django.db.models.functions import Left, Length

from memory.models import Message

# Characters of a result and of arguments that a page shows.
RESULT_CHARS, ARGUMENT_CHARS = 4_000, 4_000
# Characters that are invisible, or that reverse the order of others: a call that a user
# is asked to allow has to look like what it is.
UNSEEN = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def without_long_texts(rows: QuerySet[Message]) -> QuerySet[Message]:
    """Return the rows without the texts of results.

    `head` has their beginning and `chars` their length; other texts are whole in
    `head`. `sent_chars` is the length of what a model gets instead, 0 = of the text
    itself.
    """
    is_result = Q(role=Message.Role.TOOL)
    head = Case(
        When(is_result, then=Left("text", RESULT_CHARS)),
        default=F("text"),
        output_field=TextField(),
    )
    return rows.defer("text", "sent_text").annotate(
        head=head, chars=Length("text"), sent_chars=Length("sent_text")
    )


def visible(text: str) -> str:
    """Return the text with its invisible characters written as escapes."""
    return UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def arguments_of(value: Any) -> str:
    """Arguments as people read them: all of them, as JSON."""
    return visible(json.dumps(value, ensure_ascii=False, indent=2))
