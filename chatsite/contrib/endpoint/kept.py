"""A reply that was sent, asked for once more by the id that the provider gave it."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings

from memory.models import ModelCall

from .access.reading import record_reading
from .models import ApiKey
from .relay.answering import Answer, answer_value, read_answer
from .relay.upstream import send_upstream
from .store.known import KnownToOwner, NotYoursError
from .wires.errors import WireError
from .wires.openai_responses import make_kept_response
from .wires.wire import Wire


def find_kept(key: ApiKey, scope: Mapping[str, Any], response_id: str) -> ModelCall:
    """The request of this person that it answered; a gateway's read is recorded. Raises
    WireError."""
    try:
        served = KnownToOwner(key.owner_id).find_reply(response_id)
    except NotYoursError:
        served = None
    if served is None:
        raise WireError(404, "not_found", "There is no response with this id.")
    if key.gateway_user:
        record_reading(key, scope, served.call.conversation, "response")
    return served.call


async def fetch_kept(
    wire: Wire,
    call: ModelCall,
    response_id: str,
    query: str,
    headers: Mapping[str, str],
) -> Answer:
    """As the provider has it; without one as the transcript has it."""
    upstream = wire.find_upstream(call.model)
    if upstream is None:
        message = call.message
        kept = make_kept_response(call.model, response_id, message.text)
        return answer_value(kept)
    path = f"{wire.upstream_path}/{response_id}"
    seconds = settings.MODEL_IDLE_TIMEOUT
    response = await send_upstream(
        "GET", upstream, f"{path}?{query}" if query else path, headers, seconds=seconds
    )
    return await read_answer(response, upstream)
