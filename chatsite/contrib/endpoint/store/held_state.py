"""The part of a conversation that its provider holds.

A request continues it by the id of an earlier reply and has only the new messages. What
else the model reads is rebuilt here from what was sent before.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

from django.db.models import Sum
from django.db.models.functions import Length

from chatsite.contrib.endpoint.apis import find_api_by_name
from chatsite.contrib.endpoint.apis.api import Api, list_declared_tools
from chatsite.contrib.endpoint.apis.errors import ApiError
from chatsite.contrib.endpoint.identity.canonical import UnreadableHistoryError
from chatsite.contrib.endpoint.identity.history import (
    History,
    digest_tools,
    go_on_from,
    read_history,
)
from chatsite.contrib.endpoint.models import BodyPiece
from memory import prompts
from memory.context import HeldContext
from memory.engine.tokens import BYTES_PER_TOKEN, Parts, count_message
from memory.models import Message, ModelCall, read_langchain
from memory.ranges import Ranges, in_ranges, merge_ranges

from .body_pieces import (
    OF_TEXT,
    find_pieces,
    join_pieces,
    read_pieces,
    read_stored_object,
    write_out,
)
from .owner_history import ServedReply
from .parsed_request import ParsedRequest

KEY = "client"
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


class HeldState(NamedTuple):
    """The state that the provider holds before a request.

    It is everything up to a reply: as references, so that nothing is stored twice.
    """

    # The number of that reply, and of the messages up to it.
    after: int
    ranges: Ranges
    # Estimated; `only_there` of it only the provider can read.
    tokens: int
    only_there: int
    sha256: str

    @classmethod
    def from_reply(cls, api: Api, reply: ServedReply) -> Self:
        call = reply.call
        refs, message = call.refs, call.message
        only_there = refs.get("only_there", 0)
        tokens = (
            call.tokens_estimated - only_there + count_message(message.to_langchain())
        )
        if not api.holds_setup:
            # Other fields than the messages count for their own request only.
            tokens -= _count_fields(call)
        newest = [[refs["newest"]] * 2] if refs["newest"] else []
        spans = [*refs.get("held", ()), *refs["window"], *newest]
        spans += [*refs.get("steps", ()), [message.seq] * 2]
        setup = refs["system"], call.of_client.tools
        return cls(
            message.seq,
            merge_ranges(spans),
            max(0, tokens),
            only_there + call.of_client.report.get("hidden", 0),
            digest_held(reply.chain, *(setup if api.holds_setup else ())),
        )

    @property
    def all_tokens(self) -> int:
        return self.tokens + self.only_there

    @property
    def refs(self) -> dict[str, Any]:
        """The references of a request, beside those to what was sent."""
        hidden = {"only_there": self.only_there} if self.only_there else {}
        return {"held": self.ranges, **hidden}

    def to_json(self) -> dict[str, Any]:
        return {"after": self.after, "tokens": self.tokens, "sha256": self.sha256}

    def make_headers(self) -> dict[str, str]:
        return {HEADER: f"sha256={self.sha256}; tokens={self.all_tokens}"}


def digest_held(chain: bytes, system: str = "", tools: str = "") -> str:
    """Return the hash of what is held.

    It is made of the chain of canonical messages, and the hashes of the system prompt
    and the tools where the provider holds these.
    """
    return hashlib.sha256(f"{chain.hex()} {system} {tools}".encode()).hexdigest()


def _count_fields(call: ModelCall) -> int:
    """Estimate the tokens of a body without its messages."""
    rows = find_pieces(call.conversation_id, call.refs[KEY]["pieces"])
    chars = rows.filter(message=None).aggregate(chars=Sum(Length("text")))["chars"]
    return (chars or 0) // BYTES_PER_TOKEN


def list_parts(refs: Mapping[str, Any]) -> Parts:
    """Return the tokens of a request that were not sent with it."""
    held = refs[KEY].get("held", {}).get("tokens", 0)
    parts = (("held", held), ("only_there", refs.get("only_there", 0)))
    return tuple((name, count) for name, count in parts if count)


def rebuild_held(call: ModelCall) -> HeldContext:
    """Rebuild what the provider holds from the bodies and replies before a request."""
    api, refs = find_api_by_name(call.refs[KEY]["wire"]), call.refs
    earlier = _list_earlier(call)
    spans = [span for each in earlier for span in each.refs[KEY]["pieces"]]
    found = read_pieces(call.conversation_id, merge_ranges(spans))
    replies = _read_replies(api, earlier)
    wire: list[dict[str, Any]] = []
    setup: dict[str, Any] = {}
    for each in earlier:
        body = read_stored_object(join_pieces(each.refs[KEY], found))
        wire += [*api.list_sent(body), *replies[each.message.seq]]
        if api.holds_setup and not setup:
            setup = body
    rows = call.conversation.messages.filter(in_ranges(refs["held"]), deleted_at=None)
    named = refs[KEY]["held"]["sha256"]
    return HeldContext(
        setup.get("system"),
        api.read_instructions(setup) if setup else "",
        list_declared_tools(setup),
        wire,
        read_langchain(rows.order_by("seq")),
        named,
        named == _digest_rebuilt(api, setup, wire),
    )


def _list_earlier(call: ModelCall) -> list[ModelCall]:
    """Return the requests whose messages are held, the first one first."""
    after = call.refs[KEY]["held"]["after"]
    rows = call.conversation.model_calls.filter(message__seq__lte=after)
    rows = rows.filter(purpose=ModelCall.Purpose.REPLY, refs__has_key=KEY)
    by_reply = {
        each.message.seq: each for each in rows.order_by("pk").select_related("message")
    }
    found: list[ModelCall] = []
    while each := by_reply.pop(after, None):
        found.append(each)
        after = each.refs[KEY].get("held", {}).get("after")
    return found[::-1]


def _read_replies(
    api: Api, calls: Sequence[ModelCall]
) -> dict[int, list[dict[str, Any]]]:
    """Return the replies to these requests by number, as lists of messages or items."""
    if not api.names_replies:
        return {each.message.seq: [write_reply(api, each.message)] for each in calls}
    items: dict[int, list[dict[str, Any]]] = {each.message.seq: [] for each in calls}
    rows = BodyPiece.objects.filter(message__in=[each.message_id for each in calls])
    rows = rows.exclude(item_id="").order_by("number")
    for seq, text in write_out(rows.values_list("message__seq", *OF_TEXT)):
        items[seq].append(read_stored_object(text))
    return items


def write_reply(api: Api, row: Message) -> dict[str, Any]:
    """Return a reply of the transcript as a client sends it back."""
    reader = api.reader("")
    reader.add_text(row.text)
    for index, call in enumerate(row.tool_calls):
        arguments = json.dumps(call["args"], ensure_ascii=False)
        reader.add_call(call["name"], arguments, call["id"], index)
    message = reader.to_message()
    # No API takes back the id of a message.
    message.pop("id", None)
    return message


def _digest_rebuilt(
    api: Api, setup: Mapping[str, Any], wire: Sequence[Mapping[str, Any]]
) -> str:
    try:
        chain = read_history(api.name, {api.list_name: wire}).last_chain
    except UnreadableHistoryError:
        return ""
    if not api.holds_setup:
        return digest_held(chain)
    system = api.read_instructions(setup).encode("utf-8", "replace").decode()
    return digest_held(chain, prompts.hash_text(system), digest_tools(setup))
