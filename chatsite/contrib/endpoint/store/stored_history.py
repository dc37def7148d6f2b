"""The history for a request that has only its newest messages.

It is read from the database, in the form in which the client sent it.
"""

import json
from typing import Any
from uuid import UUID

from chatsite.contrib.endpoint.apis.api import Api
from chatsite.contrib.endpoint.apis.errors import ApiError
from chatsite.contrib.endpoint.conversation_hooks import SOURCE
from chatsite.contrib.endpoint.identity.readers import SYSTEM
from chatsite.contrib.endpoint.models import ApiKey, BodyPiece
from memory.models import Conversation, Message, ModelCall

from .bodies import BodyError, read_body
from .body_pieces import OF_TEXT, write_out
from .held_state import KEY, write_reply

Role = Message.Role


def add_history(key: ApiKey, api: Api, name: str, raw: bytes) -> tuple[int, bytes]:
    """Return the primary key of the conversation, and the body with its history.

    Raise ApiError.
    """
    if api.list_name != "messages":
        detail = "With this API, use `previous_response_id` instead."
        raise ApiError(400, "bad_send", detail)
    conversation = _find_conversation(key, api, name)
    return conversation.pk, _join_history(conversation, api, raw)


def _find_conversation(key: ApiKey, api: Api, name: str) -> Conversation:
    """Return the conversation with this id that this API can continue.

    Raise the same ApiError where there is none and where it is another user's.
    """
    rows = Conversation.objects.filter(owner_id=key.owner_id, deleted_at=None)
    rows = rows.filter(imported_from__startswith=SOURCE)
    try:
        found = rows.filter(uuid=UUID(name)).first()
    except ValueError:
        found = None
    calls = ModelCall.objects.filter(conversation=found, refs__has_key=KEY)
    latest = calls.order_by("-pk").first() if found else None
    # The last message has another form if it was sent with another API.
    if latest is None or latest.refs[KEY]["wire"] != api.name:
        detail = "There is no conversation with that id that a client has begun here."
        raise ApiError(404, "no_conversation", detail)
    return found


def _join_history(conversation: Conversation, api: Api, raw: bytes) -> bytes:
    """Return the body with all earlier messages.

    Raise ApiError.
    """
    try:
        value = read_body(raw).value
    except BodyError as error:
        raise ApiError(400, "bad_request", str(error)) from None
    new = value.get("messages")
    if not isinstance(new, list) or not all(isinstance(each, dict) for each in new):
        raise ApiError(400, "bad_request", "`messages` has to be a list of objects.")
    own = [each for each in new if each.get("role") in SYSTEM]
    said = [each for each in new if each.get("role") not in SYSTEM]
    if conversation.system_prompt and not own and not value.get("system"):
        if api.name == "messages":
            value = {**value, "system": conversation.system_prompt}
        else:
            own = [{"role": "system", "content": conversation.system_prompt}]
    value = {**value, "messages": [*own, *_read_history(conversation, api), *said]}
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _read_history(conversation: Conversation, api: Api) -> list[dict[str, Any]]:
    pieces = BodyPiece.objects.filter(conversation=conversation, message__isnull=False)
    pieces = pieces.filter(item_id="")
    # The first form of each: later ones may have been shortened.
    values = pieces.order_by("-number").values_list("message__seq", *OF_TEXT)
    written = dict(write_out(values))
    history = []
    rows = conversation.messages.filter(superseded_at=None, deleted_at=None)
    for row in rows.order_by("seq"):
        if row.seq in written:
            history.append(json.loads(written[row.seq]))
        elif row.role == Role.ASSISTANT:
            history.append(write_reply(api, row))
        # A tool result without a piece came with the message after it.
    return history
