"""One act on one conversation, whoever asked for it from which page: done, written into
the access log and the admin's own log, told to the owner's open pages.

Every function gives back a sentence, or raises ActionError with the reason; a
conversation that is gone raises Conversation.DoesNotExist.
"""

from django.contrib import admin
from django.contrib.admin.models import DELETION, LogEntry
from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import gettext as _

from memory.models import Conversation

from ..access_log import Action, record
from . import erasing, memory, reviewing


def rebuild(
    request: HttpRequest,
    conversation: Conversation,
    *,
    cause: str,
    seen: int | None = None,
) -> str:
    with transaction.atomic():
        memory.rebuild(conversation, seen=seen)
        record(request, Action.REBUILD, conversation, f"cause {cause}")
        _log(request, conversation, f"Rebuilt the summaries: {cause}.")
    memory.tell_owner(conversation)
    return _("All messages are in the window again and will be summarised anew.")


def restore(
    request: HttpRequest,
    conversation: Conversation,
    *,
    version: int,
    seen: int | None = None,
) -> str:
    with transaction.atomic():
        new = memory.restore(conversation, version, author=request.user, seen=seen)
        target = f"version {version} as {new.version}"
        record(request, Action.RESTORE, conversation, target)
        _log(request, conversation, f"Restored v{version} as v{new.version}.")
    memory.tell_owner(conversation)
    text = _("Version %(old)s is in force again, as v%(new)s.")
    return text % {"old": version, "new": new.version}


def review(
    request: HttpRequest,
    conversation: Conversation,
    *,
    note: str,
    seen: reviewing.State | None = None,
) -> str:
    with transaction.atomic():
        made = reviewing.review(conversation, user=request.user, note=note, seen=seen)
        target = f"transcript #1-#{made.last_seq}, v{made.version}"
        record(request, Action.REVIEW, conversation, target)
        _log(request, conversation, f"Marked reviewed: {target}.")
    return _("Marked reviewed up to message #%(seq)s.") % {"seq": made.last_seq}


def purge(request: HttpRequest, conversation: Conversation, *, reason: str) -> str:
    tombstone = erasing.erase(conversation, user=request.user, reason=reason)
    record(request, Action.PURGE, conversation, f"conversation {tombstone.sha256}")
    LogEntry.objects.log_actions(
        request.user.pk, [conversation], DELETION, "Erased.", single_object=True
    )
    text = _("%(name)s is erased. Its tombstone stays.")
    return text % {"name": conversation}


def _log(request: HttpRequest, conversation: Conversation, words: str) -> None:
    """Into Django's own log, which never holds a text or a title."""
    site = admin.site.get_model_admin(Conversation)
    site.log_change(request, conversation, words)
