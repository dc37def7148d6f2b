"""One import, from its file to visible conversations.

It works in batches that hold the database's lock for a moment each.
"""

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any
from uuid import UUID

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.utils.translation import gettext as _

from chatsite.features.attachments.uploads import keep_files
from chatsite.features.tree.listing import note_restored
from chatsite.jobs import queue
from chatsite.languages import find_sentence_space
from chatsite.plugins import app_data
from chatsite.turns import model_access
from chatsite.turns.copying import copies
from chatsite.turns.models import JOB_LEASE, Job
from memory import bundle, library, staging, transcript
from memory.engine.attachments import Attachment
from memory.leases import Claim, LostError
from memory.models import Conversation, Message

from .files import own, reading
from .files.archive import Archive, is_archive
from .files.draft import Draft, clean_title
from .files.pictures import Pictures
from .files.reading import ImportFileError, ImportItemError
from .outcome import Outcome

logger = logging.getLogger(__name__)

ACTION = "import"  # in the log of a conversation
# Between two batches the lock is free for others, as long as the batch had it.
MAX_PAUSE = 0.1
Source = Conversation.TitleSource


def import_conversations(claim: Claim, file: IO[bytes]) -> None:
    """Do the whole job; however it ends, it says so in its row."""
    job = JOB_LEASE.filter_held(claim).select_related("user").first()
    if job is None:
        return
    try:
        archive = Archive(file) if is_archive(file) else None
        texts = archive.read_texts() if archive else reading.read_whole(file)
        _show_all(claim, _Importer(claim, job, archive).take(reading.read_items(texts)))
    except ImportFileError as error:
        queue.close_job(claim, Job.State.FAILED, str(error))
    except MemoryError:
        queue.close_job(claim, Job.State.FAILED, reading.too_much().args[0])
    except LostError:
        staging.abandon_staged(claim.owner)
        logger.info("import lost job=%s", claim.row_id)


@transaction.atomic
def _show_all(claim: Claim, outcome: Outcome) -> None:
    """Also in the list: what should have shown a branch may be deleted since."""
    if queue.close_job(claim, Job.State.DONE, result=outcome.dump_result()):
        note_restored(outcome.imported)


class _Importer:
    def __init__(self, claim: Claim, job: Job, archive: Archive | None = None) -> None:
        self.claim, self.user, self.done = claim, job.user, 0
        self.archive, self.pictures = archive, Pictures(archive, job.user_id)

    def take(self, items: list[Any]) -> Outcome:
        outcome = Outcome()
        queue.renew(self.claim, total=sum(map(reading.count_work, items)))
        items.reverse()
        number, counted = 0, 0
        while items:
            # Finished items do not stay in memory.
            item, number = items.pop(), number + 1
            counted += reading.count_work(item)
            try:
                left_out = self._take(_read_item(item, self.user), outcome)
            except ImportItemError as error:
                left_out = str(error)
            if left_out:
                outcome.add_reason(_tell_why(number, item, left_out))
            self.done = counted
        outcome.others = self.archive.others if self.archive else 0
        return outcome

    def _take(self, draft: Draft, outcome: Outcome) -> str:
        """Store a draft; return what was left out, in words."""
        if known := self._find(draft.source):
            outcome.known.append(known)
            return ""
        # Only now: of what is known, no image is read again.
        images, lost = self.pictures.add_to_draft(draft)
        made, left_out = self._store(draft, images)
        outcome.imported.append(made)
        for kind, count in draft.left.items():
            outcome.left.count_kind(kind, count)
        outcome.images += sum(map(len, images.values()))
        return find_sentence_space().join(
            filter(None, [left_out, draft.left_out, lost])
        )

    def _find(self, source: str) -> Conversation | None:
        """Return the conversation if it was imported before, or exported from here."""
        if found := staging.find_staged(self.claim.owner).filter(imported_from=source):
            return found[0]
        rows = library.list_own(self.user)
        if found := rows.filter(imported_from=source).first():
            return found
        with suppress(ValueError):
            return rows.filter(uuid=UUID(source.removeprefix("windowpane:"))).first()
        return None

    def _store(
        self, draft: Draft, images: Mapping[int, Sequence[Attachment]]
    ) -> tuple[Conversation, str]:
        """Return the stored conversation, and what was left out, in words."""
        made = self._create(draft)
        messages = bundle.write_bundle(made, draft.bundle, self._batch)
        for seq, image in ((n, each) for n in images for each in images[n]):
            with self._batch(0):
                keep_files(messages[seq], [image], None)
        left_out = self._write_sections(draft, made, messages, of_requests=True)
        bundle.drop_unproved(made, self._batch)
        copies.write_turns(made, messages, draft.infos, self._batch)
        left_out += self._write_sections(draft, made, messages, of_requests=False)
        latest = max(row.created_at for row in messages.values())
        with self._batch(0):
            Conversation.objects.filter(pk=made.pk).update(updated_at=latest)
        return made, find_sentence_space().join(left_out)

    def _write_sections(
        self,
        draft: Draft,
        made: Conversation,
        messages: Mapping[int, Message],
        *,
        of_requests: bool,
    ) -> list[str]:
        """Store the rows of apps; return what was left out, in words."""
        left_out = []
        for each in app_data:
            if each.write and each.is_of_requests == of_requests:
                rows = draft.sections.get(each.name, ())
                sent = {"conversation": made, "messages": messages, "rows": rows}
                left_out.append(each.write(**sent, batch=self._batch))
        return [words for words in left_out if words]

    def _create(self, draft: Draft) -> Conversation:
        known = draft.model in model_access.list_granted_to(self.user.pk)
        with self._batch(0):
            made = transcript.create_conversation(
                self.user,
                title=draft.title,
                title_set_by=Source.USER if draft.is_title_of_person else Source.COPY,
                policy=draft.policy,
                model=draft.model if known else "",
                temperature=draft.temperature,
                system_prompt=draft.system_prompt,
            )
            made.imported_from, made.title_seqs = draft.source, draft.title_seqs
            made.save(update_fields=["imported_from", "title_seqs"])
            staging.hide_staged(made, self.claim.owner)
            made.changes.create(action=ACTION)
        return made

    @contextmanager
    def _batch(self, count: int) -> Iterator[None]:
        """Run a short transaction, if the job is still ours."""
        self.done += count
        with transaction.atomic():
            begun = time.monotonic()
            if not queue.renew(self.claim, done=self.done):
                raise LostError
            yield
        time.sleep(min(MAX_PAUSE, time.monotonic() - begun))


def _read_item(item: Any, user: AbstractBaseUser) -> Draft:
    form = reading.find_format(item)
    if not form:
        raise ImportItemError(_("its format is unknown."))
    if form == "windowpane":
        return own.read_export(item, user.pk)
    return reading.read_foreign(form, item)


def _tell_why(number: int, item: Any, why: str) -> str:
    inner = item.get("conversation", item) if isinstance(item, dict) else {}
    inner = inner if isinstance(inner, dict) else {}
    title = clean_title(inner.get("title") or inner.get("name"))
    title = title.encode(errors="replace").decode().replace("\0", "")[:60]
    text = _("Conversation %(number)s “%(title)s”: %(why)s")
    if not title:
        text = _("Conversation %(number)s: %(why)s")
    return text % {"number": number, "title": title, "why": why}
