"""Import of conversations: this site's own export, ChatGPT's and Claude's.

Each conversation is stored in one transaction: wholly or not at all.
"""

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.contrib.auth.models import AbstractBaseUser
from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.utils.translation import gettext as _

from memory import bundle, folding, transcript
from memory.models import Conversation

from .. import copying, preferences
from . import foreign, own, reading
from .draft import Draft, clean_title
from .reading import ImportFileError, ImportItemError

__all__ = ["ImportFileError", "Outcome", "run"]

MAX_TOLD = 50


@dataclass(slots=True)
class Outcome:
    """What came of a file: stored, there before, refused with the reason."""

    imported: list[Conversation] = field(default_factory=list)
    known: list[Conversation] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    @property
    def told(self) -> list[str]:
        return self.refused[:MAX_TOLD]

    @property
    def untold(self) -> int:
        return max(0, len(self.refused) - MAX_TOLD)


def run(user: AbstractBaseUser, upload: UploadedFile) -> Outcome:
    """Import what can be of a file. Raises ImportFileError when nothing can."""
    outcome = Outcome()
    for number, item in enumerate(reading.read(upload), 1):
        try:
            draft = _read(item, user)
            known = _find(user, draft.source)
            if known:
                outcome.known.append(known)
            else:
                outcome.imported.append(_store(user, draft))
        except ImportItemError as error:
            outcome.refused.append(_tell(number, item, error))
    return outcome


def _read(item: Any, user: AbstractBaseUser) -> Draft:
    match reading.kind_of(item):
        case "windowpane":
            return own.read(item, user.pk)
        case "chatgpt":
            return foreign.read_chatgpt(item)
        case "claude":
            return foreign.read_claude(item)
    raise ImportItemError(_("it is no conversation of a kind that is known here."))


def _tell(number: int, item: Any, error: ImportItemError) -> str:
    inner = item.get("conversation", item) if isinstance(item, dict) else {}
    inner = inner if isinstance(inner, dict) else {}
    title = clean_title(inner.get("title") or inner.get("name"))
    title = title.encode(errors="replace").decode().replace("\0", "")[:60]
    return _("Conversation %(number)s “%(title)s”: %(why)s") % {
        "number": number,
        "title": title,
        "why": error,
    }


def _find(user: AbstractBaseUser, source: str) -> Conversation | None:
    """Imported before, or the very conversation that was exported here."""
    rows = Conversation.objects.filter(owner=user, deleted_at=None)
    if found := rows.filter(imported_from=source).first():
        return found
    with suppress(ValueError):
        return rows.filter(uuid=UUID(source.removeprefix("windowpane:"))).first()
    return None


@transaction.atomic
def _store(user: AbstractBaseUser, draft: Draft) -> Conversation:
    known = draft.model in preferences.models()
    made = transcript.create(
        user,
        title=draft.title,
        policy=draft.policy,
        model=draft.model if known else "",
        system_prompt=draft.system_prompt,
    )
    made.imported_from = draft.source
    made.save(update_fields=["imported_from"])
    messages = bundle.write(made, draft.bundle)
    bundle.drop_unproved(made)
    copying.write_turns(made, messages, draft.infos)
    folding.mark_due(made.pk)
    latest = max(row.created_at for row in messages.values())
    Conversation.objects.filter(pk=made.pk).update(updated_at=latest)
    return made
