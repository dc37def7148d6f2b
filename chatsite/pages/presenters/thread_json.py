"""A conversation as JSON for its owner: the transcript, the summaries, the context.

The files of an export hold the same rows.
"""

from collections.abc import Iterator
from typing import Any

from chatsite.turns import requests
from chatsite.turns.models import Turn
from memory import bundle
from memory.context import HeldContext, RequestContext
from memory.engine.compose import digest_body, pick_fields
from memory.engine.tools import response_items
from memory.models import Conversation, Message, ModelCall
from memory.view import rebuilding

MARKS = ("superseded", "excluded", "pinned", "deleted")
# Who wrote a version is named there.
SUMMARY_FIELDS = [n for n in bundle.SUMMARY_FIELDS if n not in ("author_id", "preset")]


def list_messages(conversation: Conversation) -> Iterator[dict[str, Any]]:
    """Every message in order, and the running reply as far as it was saved."""
    rows = conversation.turns.select_related("user_message").order_by("id")
    turns = {turn.user_message.seq: turn for turn in rows}
    turn = None
    for row in requests.with_model(conversation.messages.order_by("seq")):
        # Messages come in order, so each turn begins at its user message.
        if row.seq in turns:
            yield from _list_running(turn, conversation)
            turn = turns[row.seq]
        is_reply = row.role == Message.Role.ASSISTANT
        yield {
            **{name: getattr(row, name) for name in bundle.MESSAGE_FIELDS},
            **{name: getattr(row, f"{name}_at") is not None for name in MARKS},
            "state": turn.state if turn else Turn.State.DONE,
            "turn": turn.pk if turn else None,
            "model": (row.model or _name_model(turn, conversation)) if is_reply else "",
            "error": turn.error if turn else "",
        }
    yield from _list_running(turn, conversation)


def _list_running(
    turn: Turn | None, conversation: Conversation
) -> Iterator[dict[str, Any]]:
    if turn and turn.state == Turn.State.RUNNING and turn.text:
        yield {
            "seq": turn.reply_seq,
            "role": Message.Role.ASSISTANT,
            "text": turn.text,
            "state": turn.state,
            "created_at": turn.started_at,
            "client_id": None,
            "turn": turn.pk,
            "model": _name_model(turn, conversation),
            **dict.fromkeys(("superseded", "excluded", "pinned"), False),
        }


def _name_model(turn: Turn | None, conversation: Conversation) -> str:
    return (turn.model if turn else "") or requests.model_of(conversation)


def describe_context(conversation: Conversation, reply: int | None) -> dict[str, Any]:
    """Return the request of reply `reply`, or of the next turn.

    Raises ModelCall.DoesNotExist for a number that is no reply.
    """
    call = None if reply is None else requests.reply_call(conversation, reply)
    if reply is not None and call is None:
        raise ModelCall.DoesNotExist
    built = (
        rebuilding.rebuild_context(call) if call else requests.next_turn(conversation)
    )
    found = {
        "messages": built.wire,
        "sha256": built.sha256,
        **_describe_body(conversation, call, built),
        "tools": built.tools,
        "parts": [{"name": name, "tokens": count} for name, count in built.parts],
        "tokens": {
            "estimated": built.tokens,
            "reported": call.tokens_input if call else None,
            "cached": call.tokens_cached if call else None,
            "output": call.tokens_output if call else None,
        },
        "refs": built.refs,
        "model": call.model if call else built.model or requests.model_of(conversation),
    }
    if built.read_held:
        _add_held(found, built, built.read_held())
    return found


def _describe_body(
    conversation: Conversation, call: ModelCall | None, built: RequestContext
) -> dict[str, Any]:
    """Return the hash of the body that left, or would leave now, or why there is none.

    `body_fields` are those of the body besides model, messages and tools; `input` are
    the items that a body of the Responses API has in place of messages.
    """
    sha256, fields, unknown = built.sha256, {}, ""
    if call:
        sha256, fields = rebuilding.find_body_hash(call), call.body_fields
        unknown = "" if sha256 else "not_recorded"
    elif not rebuilding.EXTERNAL & built.refs.keys():
        try:
            body = requests.make_body(built)
            sha256, fields = digest_body(body), pick_fields(body, built.model)
        except LookupError:
            sha256, unknown = "", "model_denied"
    found = {"body_sha256": sha256 or None, "body_fields": fields}
    items = response_items.has_items(fields)
    given = {"input": response_items.make_items(built.wire)} if items else {}
    return found | {"body_unknown": unknown} | given


def _add_held(found: dict[str, Any], built: RequestContext, held: HeldContext) -> None:
    """Add what the provider holds besides what was sent, and its part of the tokens."""
    kinds = ("held", "only_there")
    apart = {kind: dict(built.parts).get(kind, 0) for kind in kinds}
    found["tokens"] |= {"sent": built.tokens - sum(apart.values()), **apart}
    found["held"] = {
        "system": held.system,
        "tools": held.tools,
        "messages": held.wire,
        "sha256": held.sha256,
        "is_proved": held.is_proved,
    }


def list_summaries(conversation: Conversation) -> Iterator[dict[str, Any]]:
    rows = conversation.summaries.select_related("author").order_by("version")
    for row in rows.prefetch_related("folded_from"):
        yield {
            **{name: getattr(row, name) for name in SUMMARY_FIELDS},
            "author": row.author.get_username() if row.author else "",
            "folded_from": [older.version for older in row.folded_from.all()],
        }
