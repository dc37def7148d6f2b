"""The stored messages of one user's clients, as the identity rules query them.

Nothing here writes.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from django.conf import settings
from django.db.models import Case, F, QuerySet, When, Window
from django.db.models.functions import RowNumber

from chatsite.contrib.endpoint.apis.errors import ApiError
from chatsite.contrib.endpoint.identity.known import MOST_PLACES, PathMessage, Place
from memory import prompts
from memory.models import Conversation, ModelCall
from memory.sql import PreparedRows, prepared_rows

from ..models import ClientConversation, ClientMessage, ClientRequest
from .parsed_request import ParsedRequest
from .sent_forms import find_form

OF_PLACE = (
    *("conversation_id", "position", "conversation__of_client__family"),
    *("conversation__of_client__client", "conversation__of_client__length"),
    *("conversation__of_client__open_position", "conversation__of_client__is_single"),
)

# Whether the message is not the last one of its conversation.
IS_INSIDE = Case(
    When(position=F("conversation__of_client__length") - 1, then=False), default=True
)

# A message of an erased parent. It equals nothing that a client sends.
GONE = PathMessage(b"", "", 0)


class NotOwnedError(Exception):
    """Raised for a reply that is, or could be, another user's."""


class ServedReply(NamedTuple):
    """A reply that was sent, its place, and the hash chain up to it."""

    call: ModelCall
    place: Place
    chain: bytes


def find_previous(known: "OwnerHistory", request: ParsedRequest) -> ServedReply | None:
    """Return the reply that a body names instead of a history.

    Return None where it names none, or where the provider has to judge the id. Raise
    ApiError for a reply of another user, as for an unknown one.
    """
    try:
        return known.find_reply(request.previous) if request.previous else None
    except NotOwnedError:
        api = request.api
        detail = f"There is no response with the id of `{api.previous_field}`."
        code = api.not_found_code
        raise ApiError(404, code, detail, param=api.previous_field) from None


class OwnerHistory:
    """The message store of one user (see identity/known.py).

    With `within`, only places of this conversation are found.
    """

    def __init__(self, owner_id: int, within: int | None = None) -> None:
        self.owner_id = owner_id
        self._only = {} if within is None else {"within": within}
        self._rows = _list_living(owner_id)

    def find_chains(self, chains: Sequence[bytes]) -> Mapping[bytes, Sequence[Place]]:
        return self._find(_find_by_chain, chains)

    def find_messages(
        self, digests: Sequence[bytes]
    ) -> Mapping[bytes, Sequence[Place]]:
        return self._find(_find_by_digest, digests)

    def _find(
        self, find: PreparedRows, values: Sequence[bytes]
    ) -> dict[bytes, list[Place]]:
        named = {f"hash{n}": value for n, value in enumerate(values)}
        rows = find(owner_id=self.owner_id, **self._only, **named)
        found = defaultdict(list)
        for value, *columns in rows:
            found[bytes(value)].append(_make_place(*columns))
        return dict(found)

    def find_client(self, client: str) -> Sequence[Place]:
        rows = self._rows.filter(
            conversation__of_client__client=client,
            position=F("conversation__of_client__length") - 1,
        )
        return _read_places(rows.order_by("-conversation__updated_at", "-pk"))

    def find_request(self, key: str) -> Place | None:
        requests = ClientRequest.objects.filter(
            owner_id=self.owner_id, idempotency_key=key
        )
        last = requests.order_by("-pk").values_list("call__conversation", "position")
        for conversation, position in last[:1]:
            rows = self._rows.filter(conversation=conversation, position=position)
            return next(iter(_read_places(rows)), None)
        return None

    def find_reply(self, response_id: str) -> "ServedReply | None":
        """Return the reply with this id of the provider, or None.

        Raise NotOwnedError where the reply is, or could be, another user's.
        """
        # SQLite uses the partial index only for statements with its condition.
        rows = ClientRequest.objects.filter(response_id=response_id)
        rows = rows.exclude(response_id="")
        found = rows.filter(owner_id=self.owner_id)
        requests = [*found.select_related("call__message", "call__conversation")[:2]]
        are_passed = settings.ENDPOINT_PROVIDER_IDS == "passed"
        if not requests and (not are_passed or rows.exists()):
            raise NotOwnedError
        if len(requests) != 1 or requests[0].call.message_id is None:
            return None
        call = requests[0].call
        # Another reply may have replaced it.
        served = self._rows.filter(
            conversation=call.conversation_id,
            position=requests[0].position + 1,
            message_id=call.message_id,
            is_again=False,
        )
        for chain, *columns in served.values_list("chain", *OF_PLACE):
            return ServedReply(call, _make_place(*columns), bytes(chain))
        return None

    def read_path(self, conversation: str, first: int) -> Sequence[PathMessage]:
        found: dict[int, PathMessage] = {}
        # A branch has its parent's messages of that time, and its own forms of them.
        for rows in reversed([*self._list_generations(int(conversation), first)]):
            values = rows.filter(position__gte=first).order_by("position", "pk")
            columns = ("position", "digest", "role", "size", "is_served")
            for at, digest, role, size, is_served in values.values_list(*columns):
                # Of a message that the client changed, the form that it sent last.
                is_served |= at in found and found[at].is_served
                found[at] = PathMessage(bytes(digest), role, size, is_served)
        return [found.get(at, GONE) for at in range(first, max(found, default=-1) + 1)]

    def read_text(self, conversation: str, position: int) -> str:
        for rows in self._list_generations(int(conversation), position):
            last = rows.filter(position=position).order_by("-pk")
            for row in last.select_related("message")[:1]:
                # Of a message that the client changed, the form that it sent last. A
                # text with an image or calls is more than the transcript says of it.
                text, of = row.message.text, (row.conversation_id, row.message_id)
                if row.is_again or row.size != len(text.encode("utf-8", "replace")):
                    form = find_form(*of, bytes(row.digest))
                    return text if form is None else form
                return text
        return ""

    def read_instructions(self, conversation: str) -> str:
        # The instructions of a conversation that the client names are not compared.
        if self._only:
            return ""
        (text,) = _find_instructions(pk=int(conversation))
        return text

    def has_spoken(self, conversation: str, instructions: str, tools: str) -> bool:
        requests = ClientRequest.objects.filter(call__conversation=int(conversation))
        last = requests.order_by("-pk").values_list("tools", flat=True).first()
        # Requests from before tools were stored, and branches without one, have none.
        if not last or requests.filter(tools=tools).exists():
            return True
        name = prompts.hash_text(instructions.encode("utf-8", "replace").decode())
        return requests.filter(call__refs__system=name).exists()

    def _list_generations(
        self, conversation: int, first: int
    ) -> Iterator[QuerySet[ClientMessage]]:
        """Yield the rows of a conversation, then those of each parent it shares.

        It stops at the conversation that owns position `first`. A deleted parent still
        has its rows until it is erased.
        """
        rows = ClientMessage.objects.filter(owner_id=self.owner_id)
        pk: int | None = conversation
        while pk is not None:
            of_client = ClientConversation.objects.get(pk=pk)
            own = rows.filter(conversation=pk)
            yield own
            if first >= of_client.shared:
                return
            shared = of_client.shared
            began = ClientMessage.objects.filter(conversation=pk)
            began = began.filter(position__in=(shared - 1, shared))
            rows = rows.filter(position__lt=shared)
            if first_rows := [*began.values_list("pk", flat=True)]:
                rows = rows.filter(pk__lt=min(first_rows))
            pk = of_client.parent_id


@prepared_rows()
def _find_instructions(pk: Any) -> QuerySet[Conversation, Any]:
    return Conversation.objects.filter(pk=pk).values_list("system_prompt", flat=True)


def _list_living(owner_id: Any) -> QuerySet[ClientMessage]:
    rows = ClientMessage.objects.filter(owner_id=owner_id)
    return rows.filter(conversation__deleted_at=None)


def _find_by(column: str) -> PreparedRows:
    """Build a statement that finds messages by hashes.

    It is built once for each number of hashes, and that number is always the same.
    """

    @prepared_rows()
    def find_places(
        owner_id: Any, within: Any = None, **hashes: Any
    ) -> QuerySet[ClientMessage, Any]:
        rows = _list_living(owner_id).filter(**{f"{column}__in": [*hashes.values()]})
        rows = rows if within is None else rows.filter(conversation_id=within)
        # An agent that begins each conversation alike has thousands of places.
        order = (F("is_inside").asc(), F("pk").desc())
        place = Window(RowNumber(), partition_by=column, order_by=order)
        rows = rows.annotate(is_inside=IS_INSIDE, place=place)
        rows = rows.filter(place__lte=MOST_PLACES).order_by("place")
        return rows.values_list(column, *OF_PLACE)

    return find_places


_find_by_chain, _find_by_digest = _find_by("chain"), _find_by("digest")


def _read_places(rows: QuerySet[ClientMessage]) -> list[Place]:
    return [_make_place(*row) for row in rows.values_list(*OF_PLACE)[:MOST_PLACES]]


def _make_place(
    conversation: int,
    position: int,
    family: Any,
    client: str,
    length: int,
    open_position: int | None,
    is_single: bool,
) -> Place:
    return Place(
        str(conversation),
        position,
        str(family),
        client,
        is_tip=position == length - 1,
        is_open=position == open_position,
        is_single=is_single,
    )
