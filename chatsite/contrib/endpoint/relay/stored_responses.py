"""Fetching a stored response by the id that the provider gave it."""

from collections.abc import Mapping
from typing import Any

from memory.models import ModelCall

from ..access.read_scope import record_reading
from ..apis.api import Api
from ..apis.errors import ApiError
from ..apis.openai_responses import make_kept_response
from ..models import ApiKey
from ..store.owner_history import NotOwnedError, OwnerHistory
from .provider_answer import ProviderAnswer, ask_provider, make_json_answer


def find_response_call(
    key: ApiKey, scope: Mapping[str, Any], response_id: str
) -> ModelCall:
    """Return the call of this user that a response answered.

    A gateway's read is recorded. Raise ApiError.
    """
    try:
        served = OwnerHistory(key.owner_id).find_reply(response_id)
    except NotOwnedError:
        served = None
    if served is None:
        raise ApiError(404, "not_found", "There is no response with this id.")
    if key.gateway_user:
        record_reading(key, scope, served.call.conversation, "response")
    return served.call


async def fetch_stored_response(
    api: Api, call: ModelCall, response_id: str, query: str, headers: Mapping[str, str]
) -> ProviderAnswer:
    """Return the provider's response; without one, the transcript's text."""
    upstream = api.find_upstream(call.model)
    if upstream is None:
        kept = make_kept_response(call.model, response_id, call.message.text)
        return make_json_answer(kept)
    path = f"{api.upstream_path}/{response_id}"
    path = f"{path}?{query}" if query else path
    return await ask_provider("GET", upstream, path, headers)
