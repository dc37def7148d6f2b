"""Several conversations archived, deleted or brought back at once: a bounded number of
statements each, for at most `library.MOST_AT_ONCE` of them.
"""

from collections.abc import Mapping

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
    together = listing.expand_rows(found)
    library.archive_all(together)
    Change.record_each(together, Change.Action.ARCHIVE)
    said = ngettext(
        "%(count)s conversation archived.",
        "%(count)s conversations archived.",
        len(found),
    )
    undo = Undo("several-unarchive", found) if found else None
    return list_again(request, said % {"count": len(found)}, undo, select="")


@list_action
def unarchive(request: HttpRequest) -> HttpResponse:
    found = [each for each in read_conversations(request) if each.archived_at]
    together = listing.expand_rows(found)
    library.unarchive_all(together)
    Change.record_each(together, Change.Action.UNARCHIVE)
    said = ngettext(
        "%(count)s conversation unarchived.",
        "%(count)s conversations unarchived.",
        len(found),
    )
    undo = Undo("several-archive", found) if found else None
    return list_again(request, said % {"count": len(found)}, undo, select="")


@list_action
def delete(request: HttpRequest) -> HttpResponse:
    """Their replies stop at once; for some minutes they can be restored."""
    found = listing.expand_rows(read_conversations(request))
    library.delete_all(found)
    Change.record_each(found, Change.Action.REMOVE)
    async_to_sync(_end)(commands.stop_each(found))
    if request.POST.get("open") in {str(each.uuid) for each in found}:
        return HttpResponseClientRedirect(reverse("conversation-list"))
    return list_again(request, select="")


async def _end(running: Mapping[int, list[int]]) -> None:
    for pk, turns in running.items():
        await account.end_all(pk, turns)


@list_action
def undelete(request: HttpRequest) -> HttpResponse:
    uuids = listing.find_deleted_rows(request.user, read_uuids(request))
    try:
        found = library.restore_all(request.user, uuids)
    except Conversation.DoesNotExist:
        raise Http404 from None
    listing.note_restored(found)
    Change.record_each(found, Change.Action.UNDELETE)
    return list_again(request)


@list_action
def keep_deleted(request: HttpRequest) -> HttpResponse:
    """No longer offer to undo a deletion: the line that does so is closed."""
    uuids = listing.find_deleted_rows(request.user, read_uuids(request))
    library.end_undo(request.user, uuids)
    return list_again(request)
