"""Images of an archive, added to their messages as if they had been attached here.

An image that can't be read leaves its name, and does not stop the import.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from time import monotonic

from django.conf import settings
from django.utils.translation import gettext as _

from chatsite.features.attachments.images.imported import read_imported
from chatsite.languages import find_sentence_space
from memory.engine.attachments import Attachment, join_attachments
from memory.engine.file_names import clean_file_name
from memory.transcript import TextError

from .archive import Archive
from .draft import Draft, ImportedPicture, check_length
from .reading import MEGABYTE

# The share of an import's time for all of its images.
SHARE_OF_TIME = 0.5
# What a conversation that is exported can have again, and what is in memory at a time.
MOST_OF_MESSAGE, MOST_OF_CONVERSATION = 20, 300


class _PictureError(Exception):
    """An image that is left out; `code` says why."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class Pictures:
    """The images of one import."""

    def __init__(self, archive: Archive | None, owner_id: int) -> None:
        self.archive, self.owner_id = archive, owner_id
        self.end = monotonic() + settings.IMPORT_MAX_SECONDS * SHARE_OF_TIME

    def add_to_draft(self, draft: Draft) -> tuple[dict[int, list[Attachment]], str]:
        """Add the images to the messages of the draft.

        Return them by the number of their message, and sentences on those that were
        left out. Raises ImportItemError.
        """
        taken: dict[int, list[Attachment]] = {}
        beside: list[Attachment] = []
        lost: Counter[str] = Counter()
        for row in draft.bundle.messages:
            if not (wanted := draft.pictures.get(row["seq"])):
                continue
            own = taken[row["seq"]] = []
            words = [row["text"]]
            for picture in wanted:
                try:
                    read = self._read(picture, beside, len(own))
                except (_PictureError, TextError) as error:
                    words.append(self._name_lost(picture))
                    lost[error.code] += 1
                else:
                    own.append(read)
                    beside.append(read)
            text = "\n\n".join(filter(None, words))
            row["text"], row["attachments"] = join_attachments(text, own)
            check_length(row["seq"], row["text"])
        return taken, _explain_lost(lost)

    def _read(
        self, picture: ImportedPicture, beside: Sequence[Attachment], place: int
    ) -> Attachment:
        """Return the image. Raises _PictureError and TextError, see read_imported()."""
        size = self.archive.find_asset(picture.id) if self.archive else None
        if self.archive is None or size is None:
            raise _PictureError("missing")
        if size > settings.ATTACHMENT_MAX_MB * MEGABYTE:
            raise _PictureError("too_large")
        if place >= MOST_OF_MESSAGE or len(beside) >= MOST_OF_CONVERSATION:
            raise _PictureError("beyond")
        if monotonic() > self.end:
            raise _PictureError("too_late")
        data = self.archive.read_asset(picture.id)
        if data is None:
            raise _PictureError("broken")
        found = read_imported(self.owner_id, self._name(picture), data, beside)
        self.archive.note_image(picture.id)
        return found

    def _name(self, picture: ImportedPicture) -> str:
        known = self.archive.name_asset(picture.id) if self.archive else ""
        return clean_file_name(picture.name or known or picture.id)

    def _name_lost(self, picture: ImportedPicture) -> str:
        return _("[image: %(name)s, not imported]") % {"name": self._name(picture)}


def _explain_lost(lost: Mapping[str, int]) -> str:
    """Sentences on images that were left out, by the codes of why."""
    sentences = {
        "missing": _("Images that are missing in the file: %(count)s."),
        "too_many_pixels": _(
            "Images with more than %(pixels)s million pixels: %(count)s."
        ),
        "too_large": _("Images with more than %(size)s MB: %(count)s."),
        "too_many": _(
            "Images for which there is no room, as yours may have %(room)s MB: "
            "%(count)s."
        ),
        "beyond": _(
            "Images beyond %(message)s of a message or %(conversation)s of a "
            "conversation: %(count)s."
        ),
        "too_late": _("Images that would have taken the import too long: %(count)s."),
        "bad_attachments": _(
            "Images left out, because this site stores no images: %(count)s."
        ),
    }
    other = _("Images that can't be read: %(count)s.")
    values = {
        "pixels": settings.IMAGE_MAX_MEGAPIXELS,
        "size": settings.ATTACHMENT_MAX_MB,
        "room": settings.IMAGES_PER_PERSON_MB,
        "message": MOST_OF_MESSAGE,
        "conversation": MOST_OF_CONVERSATION,
    }
    return find_sentence_space().join(
        sentences.get(code, other) % {**values, "count": count}
        for code, count in lost.items()
    )
