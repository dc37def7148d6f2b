"""Hooks of the core for conversations of clients.

Other modules of the endpoint are loaded only for such a conversation.
"""

from collections.abc import Mapping

from memory.context import RequestContext
from memory.models import Conversation, Message, ModelCall

from .models import BodyPiece, ClientMessage, ProviderSummary

# The prefix of the client's name in `imported_from`.
SOURCE = "client:"


def is_of_client(conversation: Conversation) -> bool:
    return (conversation.imported_from or "").startswith(SOURCE)


def name_client(conversation: Conversation) -> str:
    """Return the name of its key; "" for a conversation of the site's own."""
    source = conversation.imported_from or ""
    return source.removeprefix(SOURCE) if source.startswith(SOURCE) else ""


def rebuild_of_client(call: ModelCall) -> RequestContext:
    from .store.rebuilding import rebuild_request

    return rebuild_request(call)


def find_sent_last(conversation: Conversation) -> RequestContext | None:
    """Return the client's last request; None for the site's own conversations."""
    if not is_of_client(conversation):
        return None
    calls = conversation.model_calls.filter(purpose=ModelCall.Purpose.REPLY)
    call = calls.order_by("-pk").first()
    if not call or "client" not in call.refs:
        return None
    from .store.rebuilding import rebuild_as_next

    return rebuild_as_next(call)


def forget_deleted(conversation: Conversation, seq: int, **_: object) -> None:
    """Remove message `seq` from the pieces and the hashes.

    No piece may quote it, and a request that has it begins a new conversation.
    """
    pieces = BodyPiece.objects.filter(conversation=conversation, message__seq=seq)
    if not is_of_client(conversation) and not pieces.exists():
        return
    pieces.update(text="", hole=None)
    summaries = ProviderSummary.objects.filter(conversation=conversation)
    summaries.filter(last_seq__gte=seq).update(block="")
    rows = ClientMessage.objects.filter(conversation=conversation)
    rows.filter(message__seq__gte=seq).delete()


def copy_to_branch(
    conversation: Conversation, branch: Conversation, messages: Mapping[int, Message]
) -> None:
    """Copy the pieces to a branch, which belongs to the site.

    It has the requests of its replies, and the settings of new conversations.
    """
    if not BodyPiece.objects.filter(conversation=conversation).exists():
        return
    from .store.body_pieces import copy_pieces

    copy_pieces(conversation, branch, messages)
    if is_of_client(conversation):
        branch.policy = {}
        branch.save(update_fields=["policy"])
