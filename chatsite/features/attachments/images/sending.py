"""The images of requests to models that take them, from messages or unsent uploads."""

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from chatsite.llm import dialects, vision
from chatsite.turns.requests import model_of
from memory.engine.attachments import SentImage
from memory.images.image_source import ImageSource, Measure
from memory.models import Conversation

from ..models import Upload
from .files import read_id

Key = tuple[int, str]


class KeptImages(ImageSource):
    """The images that are kept by this app."""

    def find_measure(self, conversation: Conversation) -> Measure | None:
        name = model_of(conversation)
        if vision.takes_images(name) and dialects.find_dialect(name).has_images:
            return partial(vision.count_image, name)
        return None

    def find_kept(
        self, conversation: Conversation, images: Sequence[SentImage]
    ) -> Sequence[SentImage]:
        found = set(_read_image_rows(conversation, images))
        if lacking := {each.id for each in images if key_of(each) not in found}:
            # The images of a draft.
            ids = filter(None, map(read_id, lacking))
            rows = Upload.objects.filter(owner=conversation.owner_id, pk__in=ids)
            unsent = {str(pk) for pk in rows.values_list("pk", flat=True)}
            found |= {key_of(each) for each in images if each.id in unsent}
        return [each for each in images if key_of(each) in found]

    def read_urls(
        self, conversation: Conversation, images: Sequence[SentImage]
    ) -> Mapping[SentImage, str]:
        rows = _read_image_rows(conversation, images, "type", "data")
        urls = {key: make_url(*values) for key, values in rows.items()}
        found = {each: urls[key_of(each)] for each in images if key_of(each) in urls}
        if lacking := [each for each in images if each not in found]:
            unsent = _read_unsent(conversation.owner_id, {each.id for each in lacking})
            found |= {each: unsent[each.id] for each in lacking if each.id in unsent}
        return found


def key_of(image: SentImage) -> Key:
    return image.seq, image.id


def make_url(kind: str, data: bytes) -> str:
    return f"data:{kind};base64,{b64encode(data).decode()}"


def _read_image_rows(
    conversation: Conversation, images: Iterable[SentImage], *columns: str
) -> dict[Key, tuple[Any, ...]]:
    """Columns of the rows of these images, by number of the message and id."""
    rows = conversation.image_files.filter(
        message__seq__in={each.seq for each in images}
    )
    found = rows.values_list("message__seq", "file_id", *columns)
    return {(seq, str(file_id)): tuple(values) for seq, file_id, *values in found}


def _read_unsent(owner_id: int, ids: Iterable[str]) -> dict[str, str]:
    keys = filter(None, map(read_id, ids))
    rows = Upload.objects.filter(owner=owner_id, pk__in=keys).exclude(data=None)
    return {
        str(pk): make_url(image["type"], data)
        for pk, image, data in rows.values_list("pk", "image", "data")
    }
