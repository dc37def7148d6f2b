"""The end of a client's request: its reply, its costs and its hashes.

The hashes are what the client's next request is compared with.
"""

from typing import Any

from django.db import transaction

from chatsite.contrib.endpoint import keys
from chatsite.contrib.endpoint.apis.api import ID
from chatsite.contrib.endpoint.apis.provider_report import ProviderReport
from chatsite.contrib.endpoint.apis.reply_reader import ReplyReader
from chatsite.contrib.endpoint.apis.rows import make_call_values
from chatsite.contrib.endpoint.identity.canonical import UnreadableHistoryError
from chatsite.contrib.endpoint.identity.history import read_reply
from chatsite.contrib.endpoint.models import ClientRequest
from chatsite.turns import lifecycle
from chatsite.turns.models import Turn
from memory import transcript
from memory.engine.tokens import count_text
from memory.models import Message

from .request_store import StoredRequest, make_hashes, update_standing
from .served_items import keep_items


@transaction.atomic
def finish_request(
    key_id: int,
    stored: StoredRequest,
    result: lifecycle.TurnResult,
    reader: ReplyReader,
) -> Turn | None:
    """Store the reply as far as it came.

    Return the turn, or None if its lease was lost.
    """
    claim, api = stored.claim, stored.sent.request.api
    turn = lifecycle.lock_held(claim)
    if turn is None:
        return None
    said, report = reader.to_message(), reader.report
    is_done = result.state == Turn.State.DONE
    calls = make_call_values(reader.calls.to_chunks()) if is_done else []
    stands: dict[str, Any] = {}
    turn.state, turn.text, turn.error = result.state, result.text, result.error
    turn.call_id = claim.call_id
    if result.text or calls:
        turn.reply = transcript.append_reply(
            turn.conversation,
            seq=turn.reply_seq,
            text=result.text,
            reasoning=result.reasoning,
            tool_calls=calls,
        )
        stands = _store_reply_hashes(stored, turn.reply, said)
    else:
        transcript.return_number(turn.conversation_id, turn.reply_seq)
    _store_report(stored, turn, said.get("id", ""), report)
    if report.made:
        # Imported late: few replies have any.
        from chatsite.contrib.endpoint.provider_reports import summaries

        summaries.keep_of_turn(stored, turn, report, result.tokens_output)
    if api.names_replies and (answered := turn.reply or turn.user_message):
        keep_items(answered, stored.sent.request, said["output"])
    if is_done:
        stands["open_position"] = None
    if stands:
        update_standing(pk=turn.conversation_id, **stands)
    is_bound = stored.sent.is_bound
    # The tokens of several iterations say nothing about those of one request.
    is_calibrated = is_bound and not report.iterations
    lifecycle.close_turn(turn, claim, result, is_calibrated=is_calibrated)
    used = (result.tokens_input or claim.tokens) if turn.reply or report.made else 0
    used += result.tokens_output or count_text(result.text)
    keys.charge_api_key(key_id, used)
    return turn.read_again()


def _store_report(
    stored: StoredRequest, turn: Turn, reply_id: str, report: ProviderReport
) -> None:
    values: dict[str, Any] = {}
    if counted := report.to_json():
        values["report"] = counted
    if (turn.reply or report.made) and ID.fullmatch(reply_id):
        values["response_id"] = reply_id
    if values:
        ClientRequest.objects.filter(call=stored.claim.call_id).update(**values)


def _store_reply_hashes(
    stored: StoredRequest, reply: Message, said: dict[str, Any]
) -> dict[str, Any]:
    """Store the hashes of the reply and return the new length."""
    try:
        noted = read_reply(stored.sent.request.api.name, said, stored.chain)
    except UnreadableHistoryError:
        # There is text, but the rest has no form that a client could send back.
        return {}
    at, owner_id = stored.position, stored.conversation.owner_id
    for message in noted:
        make_hashes(message, at, reply, owner_id, is_served=True).save()
    return {"length": at + 1} if noted else {}
