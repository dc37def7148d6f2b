"""Branches made, listed, deleted, and what is deleted in all of them."""

from collections.abc import Iterable
from contextvars import ContextVar
from functools import partial
from typing import Any

from asgiref.sync import async_to_sync
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from chatsite.protocol import events
from chatsite.protocol.errors import CommandError
from chatsite.turns import commands, limits
from chatsite.turns.copying import copies
from chatsite.turns.lifecycle import unfinished
from memory import actions, library, transcript
from memory.models import Conversation, Message
from memory.transcript import ClientIdConflictError

from .forks import find_owner, find_parent
from .listing import list_branch, lock_branch, lock_tree, nodes_of, settle_tree
from .models import Branch

# Branches of one conversation, with those that are gone but needed; and messages that
# these have as copies together.
MOST = 50
MOST_COPIED = 20_000
# Deleting copies calls forget_copies() for each of them, too.
_is_forgetting = ContextVar("is_forgetting", default=False)


def edit_as_branch(
    conversation: Conversation, *, seq: int, text: object, client_id: object
) -> Conversation:
    """Edit message `seq` in a new branch, with the same attachments.

    The message and all after it stay. The same request twice makes one branch. Raises
    CommandError and transcript.TextError.
    """
    client_id = transcript.check_client_id(client_id)
    if known := _find_made(conversation, client_id, text):
        return known
    message = _find_editable(conversation, seq)
    text = transcript.check_message_text(text, may_be_blank=bool(message.attachments))
    if conversation.tree:
        rows = Branch.objects.filter(tree=conversation.tree)
        _check_branch_count(rows.values_list("seq", flat=True), seq)
    limits.check_turn(conversation.owner_id)
    sent = {"text": text, "client_id": client_id, "kept": message}
    sent["rules"] = commands.detect_message_rules(conversation.owner_id, text)

    def finish(made: Conversation) -> None:
        _join_tree(conversation, made, seq, client_id)
        commands.submit_message(made, **sent, is_limited=True)

    try:
        return copies.branch_in_batches(conversation, seq, finish, is_same=True)
    except IntegrityError:
        # It came a second time meanwhile, and was faster.
        if known := _find_made(conversation, client_id, text):
            return known
        raise


def _find_made(
    conversation: Conversation, client_id: str, text: object
) -> Conversation | None:
    """Return the branch that an earlier request with this id has made."""
    conversation.refresh_from_db(fields=["tree"])
    if commands.is_known(conversation, client_id):
        raise ClientIdConflictError
    row = Branch.objects.filter(
        tree=conversation.tree, client_id=client_id, conversation__deleted_at=None
    ).select_related("conversation")
    made = row.exclude(conversation=None).first() if conversation.tree else None
    if made is None:
        return None
    said = made.conversation.messages.filter(client_id=client_id).first()
    if said is None or said.typed != text:
        raise ClientIdConflictError
    return made.conversation


def _find_editable(conversation: Conversation, seq: int) -> Message:
    commands.check_writable(conversation)
    if conversation.is_temporary:
        # Branches that no page shows would expire.
        text = _("A temporary conversation has no branches.")
        raise CommandError("not_found", text)
    message = conversation.messages.filter(
        seq=seq, role=Message.Role.USER, superseded_at=None, deleted_at=None
    ).first()
    if message is None:
        raise commands.explain_not_editable(conversation, seq)
    before = unfinished(conversation.pk).filter(user_message__seq__lt=seq)
    if before.exists():
        text = _("A reply before this message is still being written. Stop it first.")
        raise CommandError("busy", text)
    return message


def _check_branch_count(seqs: Iterable[int], seq: int) -> None:
    """Raise CommandError if there are too many branches, which fork at `seqs`."""
    found = [*seqs]
    if len(found) >= MOST:
        text = _(
            "This conversation has %(limit)s branches, which is the limit. Delete "
            "one in its map, or replace the message."
        )
        raise CommandError("full", text % {"limit": MOST})
    if sum(found) + seq > MOST_COPIED:
        text = _(
            "The branches of this conversation share too many messages to add "
            "another one. Replace the message, or branch to a new conversation."
        )
        raise CommandError("full", text)


def _join_tree(
    conversation: Conversation, made: Conversation, seq: int, client_id: str
) -> None:
    """Add the new conversation as a branch, and show it in the list."""
    join_branch(conversation, made, seq, client_id)
    # So what is said in different ways has one number.
    Conversation.objects.filter(pk=made.pk).update(next_seq=seq)
    list_branch(made)


def join_branch(
    conversation: Conversation, made: Conversation, seq: int, client_id: str = ""
) -> None:
    """Add the new conversation as a branch that forks at message `seq`.

    No list shows it yet. Call it in a transaction. Raises CommandError.
    """
    tree = conversation.tree or conversation.pk
    values = {"owner_id": conversation.owner_id, "tree": tree}
    start, _new = Branch.objects.get_or_create(
        conversation=conversation, defaults=values
    )
    nodes = nodes_of(lock_tree(tree))
    _check_branch_count((node.seq for node in nodes.values()), seq)
    Branch.objects.create(
        **values,
        conversation=made,
        parent_id=find_parent(nodes, start.pk, seq),
        seq=seq,
        client_id=client_id,
        is_folded=True,
    )
    Conversation.objects.filter(pk=conversation.pk, tree=None).update(tree=tree)
    Conversation.objects.filter(pk=made.pk).update(tree=tree)
    conversation.tree = made.tree = tree


@transaction.atomic
def delete_branch(conversation: Conversation) -> Conversation:
    """Delete one branch and return the one that the list shows now.

    The list offers to restore it; the others stay. Raises CommandError for the last
    one.
    """
    lock_branch(conversation)
    others = Branch.objects.filter(
        tree=conversation.tree, conversation__deleted_at=None
    ).exclude(Q(conversation=conversation) | Q(conversation=None))
    # Only now: another tab may have deleted one meanwhile.
    if not others.exists():
        text = _(
            "This is the last branch, so it was not deleted. To delete it, delete the "
            "conversation in the list."
        )
        raise CommandError("not_found", text)
    library.delete_conversation(conversation)
    Branch.objects.filter(conversation=conversation).update(is_folded=False)
    settle_tree(conversation.tree)
    return others.select_related("conversation").get(is_folded=False).conversation


def forget_copies(
    conversation: Conversation, seq: int, edited: actions.EditChoice, **_: object
) -> None:
    """Delete the copies of the deleted message `seq` in other branches.

    `edited` applies to them, too. Raises EditedError if it says that the user is asked.
    """
    if conversation.tree is None or _is_forgetting.get():
        return
    rows = list(Branch.objects.filter(tree=conversation.tree).order_by("pk"))
    nodes = nodes_of(rows)
    own = next((row.pk for row in rows if row.conversation_id == conversation.pk), None)
    if own is None:
        return
    # The title goes over from branch to branch, also where they say `seq` differently.
    for row in Conversation.objects.filter(tree=conversation.tree).order_by("pk"):
        transcript.forget_title(row, seq)
    owner = find_owner(nodes, own, seq)
    same = [row for row in rows if find_owner(nodes, row.pk, seq) == owner]
    beside = {row.conversation_id for row in same} - {None, conversation.pk}
    left = Message.objects.filter(
        conversation__in=beside, seq=seq, deleted_at=None
    ).select_related("conversation")
    token = _is_forgetting.set(True)
    try:
        for message in left.order_by("conversation"):
            commands.delete_message(message.conversation, seq, edited=edited)
            redraw = async_to_sync(events.publish_change)
            transaction.on_commit(partial(redraw, message.conversation_id))
    finally:
        _is_forgetting.reset(token)


def clear_erased(instance: Conversation, **_: Any) -> None:
    """Settle the tree of a conversation that was erased."""
    if instance.tree is not None:
        settle_tree(instance.tree)
