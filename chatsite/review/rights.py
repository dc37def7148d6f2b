"""The rights of a member of the staff: four permissions, independent of each other.

`memory.view_metadata` opens the review pages: who, when, how much, but no text.
`memory.read_content` adds texts and titles, `memory.export_conversations` the files to
hand over, `memory.purge_conversations` permanent erasing. The last three do nothing
without the first. If STAFF_CAN_READ_CHATS is off, all staff are refused, also
superusers.
"""

from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.utils.translation import gettext as _

METADATA = "memory.view_metadata"
CONTENT = "memory.read_content"
EXPORT = "memory.export_conversations"
PURGE = "memory.purge_conversations"


@dataclass(frozen=True, slots=True)
class Rights:
    metadata: bool = False
    content: bool = False
    export: bool = False
    purge: bool = False

    def show_text(self, text: str) -> str:
        """Return the text, or only how long it is."""
        return text if self.content else describe_hidden(len(text))


NONE = Rights()


def describe_hidden(count: int | None) -> str:
    """Return the placeholder for a text of so many characters; None: unknown."""
    if count is None:
        return _("hidden")
    return _("hidden, %(count)s characters") % {"count": count} if count else ""


def rights_of(user: AbstractBaseUser | AnonymousUser) -> Rights:
    if not (user.is_active and user.is_staff and user.has_perm(METADATA)):
        return NONE
    return Rights(
        metadata=True,
        content=settings.STAFF_CAN_READ_CHATS and user.has_perm(CONTENT),
        export=user.has_perm(EXPORT),
        purge=user.has_perm(PURGE),
    )
