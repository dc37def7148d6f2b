"""What a client asks for, read from its request before the database is asked."""

from collections.abc import Mapping
from dataclasses import dataclass

from chatsite.endpoint.identity.canonical import UnreadableHistoryError
from chatsite.endpoint.identity.hints import Hints, read_hints
from chatsite.endpoint.identity.history import History, read_history
from chatsite.endpoint.wires.errors import WireError
from chatsite.endpoint.wires.wire import ID, Wire, wants_stream

from .bodies import Body, BodyError, read_body

# A model's name, as a column has it.
MODEL_CHARS = 100


@dataclass(frozen=True, slots=True)
class Asked:
    wire: Wire
    raw: bytes
    body: Body
    history: History
    hints: Hints
    model: str

    @property
    def previous(self) -> str:
        """The id of an earlier reply, which stands for all up to it; "" = none."""
        given = self.body.value.get("previous_response_id")
        is_id = isinstance(given, str) and ID.fullmatch(given)
        return given if is_id and self.wire.id_path else ""

    @property
    def is_stream(self) -> bool:
        return wants_stream(self.body.value)

    @property
    def tokens(self) -> int:
        """Estimated."""
        return -(-len(self.raw) // 4)


def read_client_request(wire: Wire, headers: Mapping[str, str], raw: bytes) -> Asked:
    """Raises WireError for what is no request of this wire."""
    try:
        body = read_body(raw, wire.list_name)
        history = read_history(wire.name, body.value)
    except (BodyError, UnreadableHistoryError) as error:
        raise WireError(400, "bad_request", str(error)) from None
    model = body.value.get("model")
    if not isinstance(model, str) or not model.strip():
        raise WireError(400, "bad_request", "The body needs the name of a model.")
    if wire.id_path and body.value.get("background"):
        detail = (
            "A reply that no one waits for can't be had here: leave `background` out."
        )
        raise WireError(400, "bad_request", detail)
    if not history.messages:
        raise WireError(400, "bad_request", "The body needs a message to answer.")
    hints = read_hints(headers, body.value)
    return Asked(wire, raw, body, history, hints, model)
