"""Notes below messages of a client's conversation.

They say that the client changed or dropped something, and name the agents that it
started there.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.template.loader import render_to_string

from chatsite.contrib.endpoint.conversation_hooks import is_of_client
from chatsite.contrib.endpoint.models import ClientConversation, ClientRequest
from chatsite.pages.presenters.transcript_pane import ShownMessage
from memory.models import Conversation, ModelCall
from memory.ranges import Ranges, is_within

from .reason_texts import CHANGES

# Agents named below one message, and agents read for one part of the page.
MAX_NAMED, MAX_AGENTS = 10, 500
# The code of a request that names an earlier reply: the provider has the rest.
NAMED = "previous"


@dataclass(slots=True)
class MessageNote:
    """The note below one message.

    `reply` is that of the last request with changes; None while it has none.
    """

    changes: tuple[str, ...] = ()
    reply: int | None = None
    is_forgotten: bool = False
    # The provider's own summary covers all messages up to this one.
    is_summarised: bool = False
    # The conversation id and title of each.
    agents: tuple[tuple[Any, str], ...] = ()
    more_agents: int = 0


def read_notes(
    conversation: Conversation, first: int, end: int | None
) -> Mapping[int, MessageNote]:
    """Return the notes of the messages from `first` to before `end`."""
    if not is_of_client(conversation):
        return {}
    notes: dict[int, MessageNote] = defaultdict(MessageNote)
    for seq, codes, reply in _list_changes(conversation, first, end):
        known = notes[seq].changes
        new = (code for code in codes.split() if code not in known)
        notes[seq].changes, notes[seq].reply = (*known, *new), reply
    for seq, agents in _list_agents(conversation, first, end).items():
        notes[seq].agents = (*agents[:MAX_NAMED],)
        notes[seq].more_agents = len(agents[MAX_NAMED:])
    for seq in _list_forgotten(conversation, first, end):
        notes[seq].is_forgotten = True
    rows = conversation.provider_summaries.filter(last_seq__gte=first)
    rows = rows.filter(last_seq__lt=end) if end else rows
    for seq in rows.values_list("last_seq", flat=True):
        notes[seq].is_summarised = True
    return notes


def _list_changes(
    conversation: Conversation, first: int, end: int | None
) -> list[tuple[int, str, int | None]]:
    """Return the number, codes and reply of requests of these messages."""
    rows = ClientRequest.objects.exclude(changes="")
    within = {"seq__gte": first} | ({"seq__lt": end} if end else {})

    def narrow(path: str) -> Any:
        names = {f"{path}__{name}": value for name, value in within.items()}
        found = rows.filter(**{f"{path}__conversation": conversation}, **names)
        return found.values_list("pk", "noted_at", "changes", "call__message__seq")

    both = narrow("call__message").union(narrow("call__turn__user_message"))
    return [row[1:] for row in sorted(both)]


def _list_agents(
    conversation: Conversation, first: int, end: int | None
) -> dict[int, list[tuple[Any, str]]]:
    from chatsite.contrib.endpoint.identity.hints import AGENT_MARK

    rows = ClientConversation.objects.filter(
        linked=conversation, conversation__deleted_at=None, linked_at__gte=first
    )
    rows = rows.filter(client__contains=AGENT_MARK).order_by("pk")
    rows = rows.filter(linked_at__lt=end) if end else rows
    columns = ("linked_at", "conversation__uuid", "conversation__title")
    found: dict[int, list[tuple[Any, str]]] = defaultdict(list)
    for seq, *agent in rows.values_list(*columns)[:MAX_AGENTS]:
        found[seq].append((*agent,))
    return found


def _list_forgotten(
    conversation: Conversation, first: int, end: int | None
) -> list[int]:
    """Return the numbers of messages that the client no longer sends."""
    calls = conversation.model_calls.filter(purpose=ModelCall.Purpose.REPLY)
    columns = calls.order_by("-pk").values_list("refs", "of_client__why")
    refs, why = columns.first() or ({}, (NAMED,))
    sent = [] if NAMED in (why or ()) else list_sent_spans(refs)
    last = max((last for _, last in sent), default=0)
    within = {"seq__gte": first, "seq__lt": min(last, end or last)}
    return list_unsent(conversation, sent, **within)


def list_unsent(conversation: Conversation, sent: Ranges, **within: int) -> list[int]:
    """Return the messages of the transcript that are not in these spans."""
    rows = conversation.messages.filter(superseded_at=None, deleted_at=None, **within)
    seqs = rows.values_list("seq", flat=True)
    return [seq for seq in seqs if not is_within(seq, sent)]


def list_sent_spans(refs: Mapping[str, Any]) -> Ranges:
    """Return the messages that a request had, or that its summaries covered."""
    spans = [*refs["window"], *refs.get("steps", ()), *refs.get("cut", ())]
    spans += refs.get("held", ())
    return [*spans, [refs["newest"]] * 2] if refs["newest"] else spans


def draw_note(conversation: Conversation, message: ShownMessage) -> str:
    note = message.extra[NOTE]
    if note is None:
        return ""
    values = {"conversation": conversation, "note": note}
    values["changes"] = [CHANGES[code] for code in note.changes if code in CHANGES]
    return render_to_string("endpoint/_note.html", values)


NOTE = "client_note"
ROWS = {NOTE: read_notes}
