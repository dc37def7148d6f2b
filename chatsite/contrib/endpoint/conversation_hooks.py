"""What makes a conversation of a client different from the others. Only for such a one
anything else of the endpoint is loaded.
"""

from collections.abc import Mapping

from memory.context import RequestContext
from memory.models import Conversation, Message, ModelCall

from .models import BodyPiece, ClientMessage

# In `imported_from`, before the name of the client.
SOURCE = "client:"


def is_of_client(conversation: Conversation) -> bool:
    return (conversation.imported_from or "").startswith(SOURCE)


def name_client(conversation: Conversation) -> str:
    """The name of its key; "" for a conversation of the site's own."""
    source = conversation.imported_from or ""
    return source.removeprefix(SOURCE) if source.startswith(SOURCE) else ""


def rebuild_of_client(call: ModelCall) -> RequestContext:
    from .store.rebuilding import rebuild_request

    return rebuild_request(call)


def find_sent_last(conversation: Conversation) -> RequestContext | None:
    """What the client sent last; None for a conversation of the site's own."""
    if not is_of_client(conversation):
        return None
    calls = conversation.model_calls.filter(purpose=ModelCall.Purpose.REPLY)
    call = calls.order_by("-pk").first()
    if not call or "client" not in call.refs:
        return None
    from .store.rebuilding import rebuild_as_next

    return rebuild_as_next(call)


def forget_deleted(conversation: Conversation, seq: int, **_: object) -> None:
    """Message `seq` was deleted: no piece may quote it, and what the client sends again
    begins a new conversation."""
    pieces = BodyPiece.objects.filter(conversation=conversation, message__seq=seq)
    if not is_of_client(conversation) and not pieces.exists():
        return
    pieces.update(text="", hole=None)
    rows = ClientMessage.objects.filter(conversation=conversation)
    rows.filter(message__seq__gte=seq).delete()


def copy_to_branch(
    conversation: Conversation, branch: Conversation, messages: Mapping[int, Message]
) -> None:
    """A branch is the site's own: it has what its replies were made of, and goes on
    with the settings that new conversations have."""
    if not BodyPiece.objects.filter(conversation=conversation).exists():
        return
    from .store.body_pieces import copy_pieces

    copy_pieces(conversation, branch, messages)
    if is_of_client(conversation):
        branch.policy = {}
        branch.save(update_fields=["policy"])
