"""Examples as JSON Lines, written while they are sent.

There is a format for training chat models and one for evaluations. A line is
written only if its request is proved. Also reads and writes examples in the
export of a conversation.
"""

import json
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

from channels.db import database_sync_to_async
from django.db.models import F, QuerySet
from django.http import StreamingHttpResponse
from django.utils import timezone
from pydantic import BaseModel, Field

from chatsite.plugins import Seq, Time
from memory import bundle
from memory.models import Conversation, Message

from . import services
from .models import Example
from .proofs import (
    CHECKED,
    REBUILT,
    Proof,
    find_missing_texts,
    prove_examples,
    read_examples,
    split_keys,
)

logger = logging.getLogger(__name__)

# Maximum of examples in one file.
MOST = 10_000
# For a client's own request, the hash is that of its body.
OF_CLIENT = "client"

# Called with the conversations of the next lines, before these are sent.
Look = Callable[[Iterable[Conversation]], None]


def to_chat_line(proof: Proof) -> dict[str, Any]:
    """Return a line for training chat models: the request, then the right answer."""
    said = proof.example.correction or proof.example.message.text
    return {"messages": [*proof.built.wire, {"role": "assistant", "content": said}]}


def to_eval_line(proof: Proof) -> dict[str, Any]:
    """Return a line for evaluations.

    `sha256` is the hash of the canonical JSON of the messages, or of the body if a
    client sent it.
    """
    example, refs = proof.example, proof.built.refs
    return {
        "item": {
            "messages": proof.built.wire,
            "reply": example.message.text,
            "correction": example.correction or example.message.text,
            "label": example.label,
            "sha256": proof.call.sha256,
            "sha256_of": "body" if OF_CLIENT in refs else "messages",
            "model": proof.call.model,
            "conversation": str(example.conversation.uuid),
            "reply_number": example.message.seq,
        }
    }


FORMS: dict[str, Callable[[Proof], dict[str, Any]]] = {
    "chat": to_chat_line,
    "evals": to_eval_line,
}


def send_examples(
    rows: QuerySet[Example], form: str, look: Look = lambda _: None
) -> StreamingHttpResponse:
    """Send a file of the examples whose requests can be rebuilt, at most MOST.

    The file name and headers contain the numbers of examples in it and left out.
    """
    keys = [*rows.order_by("conversation_id", "pk").values_list("pk", flat=True)[:MOST]]
    left_out: set[int] = set()
    for some in split_keys(keys, CHECKED):
        left_out |= find_missing_texts(read_examples(some)).keys()
    whole = [key for key in keys if key not in left_out]
    answer = StreamingHttpResponse(
        _write_lines(whole, form, look), content_type="application/jsonl"
    )
    name = f"examples-{form}-{timezone.localdate():%Y-%m-%d}-{len(whole)}"
    if left_out:
        name += f"-without-{len(left_out)}"
    answer["Content-Disposition"] = f'attachment; filename="{name}.jsonl"'
    answer["X-Examples"] = str(len(whole))
    answer["X-Examples-Left-Out"] = str(len(left_out))
    return answer


async def _write_lines(
    keys: Sequence[int], form: str, look: Look
) -> AsyncIterator[str]:
    for some in split_keys(keys, REBUILT):
        yield await database_sync_to_async(_write_some)(some, form, look)


def _write_some(keys: Sequence[int], form: str, look: Look) -> str:
    proofs = prove_examples(read_examples(keys))
    proved = [each for each in proofs if each.built]
    for each in proofs:
        if each.built is None:
            logger.warning("example left out example=%s", each.example.pk)
    look(
        {
            each.example.conversation_id: each.example.conversation for each in proved
        }.values()
    )
    return "".join(
        json.dumps(FORMS[form](each), ensure_ascii=False) + "\n" for each in proved
    )


class ExampleRow(BaseModel):
    """The owner's example of reply `seq`: its kind, and the right answer."""

    seq: Seq
    label: Literal[*Example.Label.values]
    correction: Annotated[str, Field(max_length=Example.MAX_CHARS)] = ""
    created_at: Time = None
    updated_at: Time = None


def read_marked(conversation: Conversation) -> list[dict[str, Any]]:
    """Return the examples of its owner, in the order of their replies."""
    rows = conversation.examples.filter(author=conversation.owner_id)
    columns = ("label", "correction", "created_at", "updated_at")
    return list(rows.order_by("message__seq").values(*columns, seq=F("message__seq")))


def write_marked(
    conversation: Conversation,
    messages: Mapping[int, Message],
    rows: Sequence[ExampleRow],
    batch: bundle.Batch = bundle.at_once,
) -> None:
    """Create the owner's examples, one per reply, up to the owner's limit.

    The first row of each reply counts.
    """
    owner_id, made = conversation.owner_id, {}
    for row in rows:
        reply = messages.get(row.seq)
        if reply and reply.role == Message.Role.ASSISTANT and not reply.deleted_at:
            values = row.model_dump(include={"label", "correction"})
            values |= {"message": reply, "author_id": owner_id}
            made.setdefault(
                row.seq, (row, Example(conversation=conversation, **values))
            )
    with batch(0):
        room = services.MOST - Example.objects.filter(author=owner_id).count()
        fitting = [*made.values()][: max(0, room)]
        bundle.create_dated(
            [example for _row, example in fitting], [row for row, _example in fitting]
        )
