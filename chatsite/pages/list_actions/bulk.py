"""Several conversations archived, deleted or restored at once.

Each takes a bounded number of statements, for at most `library.MOST_AT_ONCE` of them.
"""

from collections.abc import Callable
from uuid import UUID

from asgiref.sync import async_to_sync
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import ngettext
from django_htmx.http import HttpResponseClientRedirect

from chatsite.accounts import account
from chatsite.features.tree import listing
from chatsite.turns import commands
from memory import library
from memory.models import Change, Conversation

from .answers import Undo, list_action, list_again, read_conversations, read_uuids


@list_action
def archive(request: HttpRequest) -> HttpResponse:
    # A search finds both kinds, and Undo is for what was changed.
    found = [each for each in read_conversations(request) if not each.archived_at]
    change_each(found, library.archive_all, Change.Action.ARCHIVE)
    said = ngettext(
        "%(count)s conversation archived.",
        "%(count)s conversations archived.",
        len(found),
    )
    return _announce_change(request, found, said, "several-unarchive")


@list_action
def unarchive(request: HttpRequest) -> HttpResponse:
    found = [each for each in read_conversations(request) if each.archived_at]
    change_each(found, library.unarchive_all, Change.Action.UNARCHIVE)
    said = ngettext(
        "%(count)s conversation unarchived.",
        "%(count)s conversations unarchived.",
        len(found),
    )
    return _announce_change(request, found, said, "several-archive")


def change_each(
    rows: list[Conversation], change: Callable[..., object], action: str
) -> list[Conversation]:
    """Change all conversations that these rows of the list represent; return these."""
    together = listing.expand_rows(rows)
    change(together)
    Change.record_each(together, action)
    return together


def _announce_change(
    request: HttpRequest, found: list[Conversation], said: str, undo: str
) -> HttpResponse:
    offered = Undo(undo, found) if found else None
    return list_again(request, said % {"count": len(found)}, offered, select="")


@list_action
def delete(request: HttpRequest) -> HttpResponse:
    return delete_rows(request, read_conversations(request), library.delete_all)


def delete_rows(
    request: HttpRequest, rows: list[Conversation], delete: Callable[..., object]
) -> HttpResponse:
    """Delete all conversations that these rows represent.

    Their replies stop at once; for some minutes they can be restored.
    """
    found = change_each(rows, delete, Change.Action.REMOVE)
    for pk, turns in commands.stop_each(found).items():
        async_to_sync(account.end_all)(pk, turns)
    if request.POST.get("open") in {str(each.uuid) for each in found}:
        return HttpResponseClientRedirect(reverse("conversation-list"))
    return list_again(request, select="")


@list_action
def undelete(request: HttpRequest) -> HttpResponse:
    restore_listed(request, read_uuids(request))
    return list_again(request)


def restore_listed(request: HttpRequest, uuids: list[UUID]) -> None:
    """Bring back what these rows stood for. Raises Http404."""
    uuids = listing.find_deleted_rows(request.user, uuids)
    try:
        found = library.restore_all(request.user, uuids)
    except Conversation.DoesNotExist:
        raise Http404 from None
    listing.note_restored(found)
    Change.record_each(found, Change.Action.UNDELETE)


@list_action
def keep_deleted(request: HttpRequest) -> HttpResponse:
    """Stop offering to undo a deletion: close the line that does so."""
    uuids = listing.find_deleted_rows(request.user, read_uuids(request))
    library.end_undo(request.user, uuids)
    return list_again(request)
