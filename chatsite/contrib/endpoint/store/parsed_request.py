"""A client's request, parsed and checked before the database is read."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from django.conf import settings
from langchain_core.messages import BaseMessage

from chatsite.contrib.endpoint.apis.anthropic_messages import THREAD
from chatsite.contrib.endpoint.apis.api import ID, Api, wants_stream
from chatsite.contrib.endpoint.apis.errors import ApiError
from chatsite.contrib.endpoint.apis.named_objects import find_named_object
from chatsite.contrib.endpoint.apis.openai_responses import (
    REFERENCE,
    TRIGGER,
    find_kind,
)
from chatsite.contrib.endpoint.apis.provider_report import COMPACTION
from chatsite.contrib.endpoint.identity.canonical import UnreadableHistoryError
from chatsite.contrib.endpoint.identity.hints import Hints, read_hints
from chatsite.contrib.endpoint.identity.history import History

from .bodies import OTHER_CASE, Body, BodyError
from .body_cache import body_cache

# A model's name, as a column has it.
MODEL_CHARS = 100


@dataclass(frozen=True, slots=True)
class ParsedRequest:
    """A request that is well formed."""

    api: Api
    raw: bytes
    body: Body
    history: History
    hints: Hints
    model: str
    # The only conversation that it may continue; None: the history decides.
    within: int | None = None
    # The size of the items named by id, which the provider counts too.
    named_bytes: int = 0
    # Where another process answers in its conversation, it waits for a sign of life.
    waits: bool = True

    @property
    def previous(self) -> str:
        """The id of the earlier reply that replaces the history, or ""."""
        return self.api.read_previous(self.body.value)

    @property
    def holds_state(self) -> bool:
        """True if the provider holds the history, or is asked to."""
        thread = self.body.value.get(THREAD) if self.api.holds_setup else None
        return bool(self.previous or thread)

    @property
    def is_compaction(self) -> bool:
        """True if it asks the provider to summarise a history that ends in a reply.

        A summary in place of a reply is the end of a turn.
        """
        value, said = self.body.value, self.history.messages
        if said and said[-1].role != "assistant":
            return False
        if self.api.names_replies:
            return ends_in_trigger(self.api, value) and bool(said or self.previous)
        return bool(said) and isinstance(value.get(COMPACTION), dict)

    @property
    def references(self) -> list[Any]:
        """The ids of items that are named instead of sent, as they came."""
        items = self.api.list_sent(self.body.value) if self.api.names_replies else ()
        return [item.get("id") for item in items if find_kind(item) == REFERENCE]

    @property
    def is_stream(self) -> bool:
        return wants_stream(self.body.value)

    @property
    def demo_messages(self) -> list[BaseMessage]:
        """The messages as the demo model gets them."""
        return self.api.to_demo_messages(self.body.value)

    @property
    def tokens(self) -> int:
        """The estimated number of tokens."""
        return -(-(len(self.raw) + self.named_bytes) // 4)


def ends_in_trigger(api: Api, value: Mapping[str, Any]) -> bool:
    """Return whether the last item asks for the provider's own summary."""
    items = api.list_sent(value) if api.names_replies else ()
    return bool(items) and find_kind(items[-1]) == TRIGGER


@dataclass(frozen=True, slots=True)
class OutgoingRequest:
    """The request that is sent, and the message counts before and after.

    With the default values, it is what the client sent.
    """

    request: ParsedRequest
    tokens: int
    before: int
    after: int
    # Whether it may differ from what the client sent.
    is_bound: bool = False
    # Spans of the positions of its messages; None: all messages.
    positions: list[list[int]] | None = None
    # The last message that summaries cover.
    cutoff: int = 0
    # References of the summaries and rules before that, and the texts they name.
    refs: dict[str, Any] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    # The token limit of its messages; 0: not bounded.
    limit: int = 0
    is_too_long: bool = False

    @classmethod
    def make_unchanged(cls, request: ParsedRequest) -> Self:
        """Return the request as the client sent it."""
        count = len(request.history.messages)
        return cls(request, request.tokens, count, count)


def read_client_request(
    api: Api,
    headers: Mapping[str, str],
    raw: bytes,
    within: int | None = None,
    owner_id: int | None = None,
) -> ParsedRequest:
    """Parse and check a body, and cache it for the next request.

    Raise ApiError for a body that is no request of this API. `owner_id` is the user
    who sends it; without it nothing is cached.
    """
    whose: Hashable = (owner_id, api.name, settings.ENDPOINT_PROVIDER_IDS)
    try:
        reading = body_cache.parse_body(whose, api, raw)
    except (BodyError, UnreadableHistoryError) as error:
        raise ApiError(400, "bad_request", str(error)) from None
    body, history, _ = reading
    model = body.value.get("model")
    if not isinstance(model, str) or not model.strip():
        raise ApiError(400, "bad_request", "The body needs the name of a model.")
    if api.id_path and body.value.get("background"):
        detail = "Background replies are not supported: leave `background` out."
        raise ApiError(400, "bad_request", detail)
    previous = api.read_previous(body.value)
    if previous and not (isinstance(previous, str) and ID.fullmatch(previous)):
        detail = f"`{api.previous_field}` is no id of a reply."
        raise ApiError(400, "bad_request", detail)
    # Only a thread can be resumed, and a reply compacted, without a new message.
    is_whole = previous and (
        api.holds_setup
        or (ends_in_trigger(api, body.value) and api.find_upstream(model) is not None)
    )
    if not history.messages and not is_whole:
        raise ApiError(400, "bad_request", "The body needs a message to answer.")
    check_named_objects(api, body, reading.known_items)
    hints = read_hints(headers, body.value)
    if owner_id is not None:
        # Only a body that was not refused is cached.
        body_cache.add_body(whose, api, raw, reading)
    return ParsedRequest(api, raw, body, history, hints, model, within)


def check_named_objects(api: Api, body: Body, first: int) -> None:
    """Raise ApiError for ids of objects that another user could own.

    `first` is the first item of the list to check.
    """
    if settings.ENDPOINT_PROVIDER_IDS == "passed":
        return
    try:
        field_name = find_named_object(api.name, body.value, first)
    except RecursionError:
        detail = "The body is nested too deeply."
        raise ApiError(400, "bad_request", detail) from None
    if field_name != field_name.casefold():
        detail = OTHER_CASE.format(field_name[:100], field_name.casefold()[:100])
        raise ApiError(400, "bad_request", detail)
    if field_name:
        detail = (
            f"`{field_name}` names something by its id, and this site can't tell "
            "whose it is. Send its content instead."
        )
        raise ApiError(400, "id_not_allowed", detail)
