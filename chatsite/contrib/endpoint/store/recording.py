"""The record of a request that is about to be sent.

It holds references to its parts, and the hash of its bytes.
"""

from typing import TYPE_CHECKING, Any

from chatsite.contrib.endpoint.models import ClientRequest
from chatsite.llm import providers
from memory import prompts
from memory.models import Message, ModelCall
from memory.ranges import pack_numbers, to_ranges

from .bodies import pack_runs
from .parsed_request import MODEL_CHARS

if TYPE_CHECKING:
    from .request_store import RequestWriter


def store_call(writer: "RequestWriter", reply_seq: int) -> ModelCall:
    request, sent = writer.request, writer.sent
    is_demo = request.api.find_upstream(request.model) is None
    model = providers.DEMO if is_demo else request.model[:MODEL_CHARS]
    call = ModelCall.objects.create(
        conversation=writer.conversation,
        purpose=ModelCall.Purpose.REPLY,
        refs=_refer_sent(writer, reply_seq),
        sha256=sent.request.body.sha256,
        model=model,
        provider="" if is_demo else request.api.name_upstream(request.model),
        tokens_estimated=sent.tokens,
    )
    prompts.keep_texts(writer.conversation, sent.texts)
    turn = writer.turns.turn
    ClientRequest.objects.create(
        call=call,
        owner_id=writer.key.owner_id,
        key=writer.key,
        lineage=writer.reported.kind,
        why=list(writer.reported.why),
        idempotency_key=request.hints.idempotency_key,
        position=writer.of_client.length - 1,
        tools=writer.history.tools,
        changes=" ".join(writer.changes),
        noted_at=turn.user_message.seq if turn else reply_seq,
    )
    return call


def _refer_sent(writer: "RequestWriter", reply_seq: int) -> dict[str, Any]:
    sent = writer.sent
    body, api = sent.request.body, sent.request.api
    is_cut = sent.positions is not None
    known = _find_rows(writer) if is_cut else find_resent_rows(writer)
    newest, window, steps = writer.turns.find_sent(reply_seq, known)
    instructions = api.read_instructions(body.value)
    system = prompts.hash_text(instructions.encode("utf-8", "replace").decode())
    if writer.holds_setup:
        system = writer.previous.call.refs["system"]
    refs = {
        "system": system,
        "fence": "",
        "summaries": [],
        "pinned": [],
        "recalled": [],
        "left_out": [],
        "window": window,
        "newest": newest,
        **({"steps": steps} if steps else {}),
        **sent.refs,
        **(held.refs if (held := writer.held) else {}),
        "client": {
            "wire": api.name,
            "between": pack_runs(body.between),
            "pieces": pack_numbers(writer.pieces.list_numbers(body.pieces)),
            **({"held": held.to_json()} if held else {}),
        },
    }
    if is_cut:
        refs |= _refer_cut(writer, known, reply_seq)
    return refs


def find_resent_rows(writer: "RequestWriter") -> set[int] | None:
    """Return the rows that the client still sends; None: all of them."""
    if len(writer.messages) == writer.of_client.length:
        return None
    ends, pieces = dict(writer.pieces.list_messages()), writer.request.body.pieces
    numbers = writer.pieces.list_numbers(pieces)
    pieces = {p.at: ends.get(n) for p, n in zip(pieces, numbers, strict=True)}
    # By hash chain, as one piece can occur twice; old rows may have no chain.
    hashes = writer.conversation.client_messages.values_list("chain", "message__seq")
    chains = {bytes(chain): seq for chain, seq in hashes.iterator()}
    sent = {chains.get(m.chain, pieces.get(m.start)) for m in writer.messages}
    rows = writer.conversation.messages.order_by("-seq").values_list("seq", "role")
    known, is_known, stored = set(), False, {*ends.values()}
    for seq, role in rows:
        # Tool results that came in one message have rows before its last row.
        if seq in stored or role != Message.Role.TOOL:
            is_known = seq in sent
        if is_known:
            known.add(seq)
    return known


def _find_rows(writer: "RequestWriter") -> set[int]:
    """Return the numbers of the rows of the messages that are sent."""
    found: set[int] = set()
    of_client, cutoff = writer.of_client, writer.sent.cutoff
    for first, last in writer.sent.positions or ():
        start = of_client.find_seq(first - 1) + 1 if first else 1
        end = of_client.find_seq(last)
        # The summaries may cover a part of a message, or the whole question that is
        # answered.
        found.update(range(max(start, cutoff + 1) if end > cutoff else start, end + 1))
    return found


def _refer_cut(
    writer: "RequestWriter", sent: set[int], reply_seq: int
) -> dict[str, Any]:
    """Return the rows that were not sent on, and those that no summary covers."""
    known = find_resent_rows(writer)
    cut = (set(range(1, reply_seq)) if known is None else known) - sent
    left = {seq for seq in cut if seq > writer.sent.cutoff}
    if left:
        rows = writer.conversation.messages.filter(superseded_at=None)
        left &= set(rows.values_list("seq", flat=True))
    return {"cut": to_ranges(cut), "left_out": to_ranges(left)}
