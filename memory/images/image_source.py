"""The source of the images of requests, which an app replaces.

A message of the memory is text, in which an image has its name. Images that are sent
with a request are noted on the messages and counted with their tokens; their bytes are
joined only once the request is whole.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from langchain_core.messages import BaseMessage, HumanMessage

from memory.engine.attachments import SentImage, has_attachments
from memory.engine.tokens import SENT_IMAGES
from memory.models import Message

if TYPE_CHECKING:
    from memory.models import Conversation

# The most images in a request. The newest are sent, the others by name only.
MOST_OF_REQUEST = 10

# Tokens of an image by its width and height.
Measure = Callable[[int, int], int]
Places = Mapping[int, Sequence[Mapping[str, Any]]]


class ImageSource:
    """The source of images; with this one, no model accepts any and none is sent."""

    def find_measure(self, conversation: "Conversation") -> Measure | None:
        """Return how the conversation's model counts images; None: it accepts none."""
        return None

    def find_kept(
        self, conversation: "Conversation", images: Sequence[SentImage]
    ) -> Sequence[SentImage]:
        """Return those of these images whose bytes exist."""
        return []

    def read_urls(
        self, conversation: "Conversation", images: Sequence[SentImage]
    ) -> Mapping[SentImage, str]:
        """Return the data URL of each image, with its bytes."""
        return {}


# The source in use.
current = ImageSource()


def note_images(
    conversation: "Conversation",
    messages: Sequence[BaseMessage],
    newest: Message | None = None,
) -> None:
    """Note on these messages which of their images are sent with a request.

    They are the newest ones that the model accepts. `newest`: the row of the last
    message, which may not be stored.
    """
    places = _read_places(conversation, messages, newest)
    measure = current.find_measure(conversation) if places else None
    if measure is None:
        return
    known = [
        SentImage(seq, n, place["id"], measure(image["width"], image["height"]))
        for seq, files in sorted(places.items(), reverse=True)
        for n, place in reversed([*enumerate(files)])
        if (image := place.get("image"))
    ]
    kept = set(current.find_kept(conversation, known)) if known else set()
    _mark_images(
        messages, islice((each for each in known if each in kept), MOST_OF_REQUEST)
    )


def note_again(
    conversation: "Conversation",
    messages: Sequence[BaseMessage],
    refs: Iterable[Sequence[int]],
) -> None:
    """Note the images of a recorded request from its references.

    A reference has number, place and tokens.
    """
    found = list(refs)
    if not found:
        return
    rows = conversation.messages.filter(seq__in={seq for seq, *_ in found})
    places: Places = dict(rows.values_list("seq", "attachments"))
    _mark_images(
        messages,
        (
            SentImage(seq, n, str(places[seq][n]["id"]), tokens)
            for seq, n, tokens in found
            if n < len(places.get(seq, ()))
        ),
    )


def note_sizes(
    conversation: "Conversation",
    messages: Sequence[BaseMessage],
    refs: Iterable[Sequence[int]],
) -> None:
    """Note the images of a recorded request for their tokens alone.

    Their bytes are never read.
    """
    _mark_images(messages, (SentImage(seq, n, "", tokens) for seq, n, tokens in refs))


def _read_places(
    conversation: "Conversation",
    messages: Sequence[BaseMessage],
    newest: Message | None,
) -> dict[int, Sequence[Mapping[str, Any]]]:
    """Return the attachments of the user messages that have any, by number.

    No provider accepts an image as a part of a reply; a reply has its name.
    """
    seqs = {
        int(each.id or 0)
        for each in messages
        if isinstance(each, HumanMessage) and has_attachments(each.text)
    }
    own = {newest.seq: newest.attachments} if newest else {}
    if stored := seqs - own.keys():
        rows = conversation.messages.filter(seq__in=stored)
        own |= dict(rows.values_list("seq", "attachments"))
    return {seq: places for seq, places in own.items() if places}


def _mark_images(messages: Sequence[BaseMessage], images: Iterable[SentImage]) -> None:
    by_seq: dict[int, list[SentImage]] = {}
    for image in images:
        by_seq.setdefault(image.seq, []).append(image)
    for message in messages:
        own = by_seq.get(int(message.id or 0))
        # Imported references can name any message.
        if own and isinstance(message, HumanMessage):
            own.sort(key=lambda image: image.place)
            message.additional_kwargs[SENT_IMAGES] = tuple(own)


def images_of(messages: Iterable[BaseMessage]) -> list[SentImage]:
    """Return the images that are noted on these messages, in the sent order."""
    return [
        image
        for message in messages
        for image in message.additional_kwargs.get(SENT_IMAGES, ())
    ]


def without_bytes(wire: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages of a request for display: images as type and size."""

    def shorten(part: Any) -> Any:
        url = part.get("image_url", {}).get("url") if isinstance(part, dict) else None
        if not isinstance(url, str):
            return part
        kind = url.partition(",")[0]
        return {**part, "image_url": {"url": f"{kind},… ({len(url):,} characters)"}}

    return [
        {**each, "content": [shorten(part) for part in each["content"]]}
        if isinstance(each["content"], list)
        else each
        for each in wire
    ]


def join_images(
    conversation: "Conversation", messages: list[BaseMessage]
) -> list[BaseMessage]:
    """Return the messages as they are sent: a text, then its noted images.

    An image whose bytes are gone is "", so the hash of the whole differs.
    """
    noted = images_of(messages)
    if not noted:
        return messages
    urls = current.read_urls(conversation, noted)

    def join(message: BaseMessage) -> BaseMessage:
        own = images_of([message])
        parts: list[str | dict[str, Any]] = [{"type": "text", "text": message.text}]
        parts += [
            {"type": "image_url", "image_url": {"url": urls.get(image, "")}}
            for image in own
        ]
        return HumanMessage(parts) if own else message

    return [join(message) for message in messages]
