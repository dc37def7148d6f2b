"""The part of a conversation that its provider holds.

A request continues it by the id of an earlier reply and has only the new messages. What
else the model reads is rebuilt here from what was sent before.
"""

from chatsite.contrib.endpoint.apis.errors import ApiError
from chatsite.contrib.endpoint.identity.history import (
    History,
    go_on_from,
    read_history,
)

from .owner_history import ServedReply
from .parsed_request import ParsedRequest

HEADER = "x-windowpane-held"
REFUSED = (
    "This key shortens what is sent, and what the provider holds can't be shortened. "
    "Send the whole history, or use x-windowpane-mode: observe."
)


def refuse_held(request: ParsedRequest) -> None:
    """Raise ApiError for a request in *bound* that leaves its history to the provider.

    The client then sends its whole history.
    """
    if request.holds_state:
        code = "thread_unsupported_request" if request.api.holds_setup else "held_state"
        param = None if request.api.holds_setup else request.api.previous_field
        headers = {HEADER: "refused", "x-windowpane-mode": "bound"}
        raise ApiError(400, code, REFUSED, param=param, headers=headers)


def continue_history(request: ParsedRequest, previous: ServedReply | None) -> History:
    """Return the history of a request after the reply that it names, if any.

    Raise ApiError for a request without a message, which only a known reply can have.
    """
    history = request.history
    if previous is None:
        if not history.messages:
            raise ApiError(400, "bad_request", "The body needs a message to answer.")
        return history
    calls = {
        each["id"]: place for place, each in enumerate(previous.call.message.tool_calls)
    }
    if calls or history.leading:
        # The body lacks the calls of its first results; its first message is in the
        # middle of the history.
        history = read_history(request.api.name, request.body.value, calls)
    history = go_on_from(history, previous.chain)
    if not request.api.holds_setup:
        return history
    held = previous.call
    return history._replace(
        instructions=[held.conversation.system_prompt], tools=held.of_client.tools
    )
