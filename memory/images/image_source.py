"""Where the images of requests come from, which an app puts in its place.

A message of the memory is text, in which an image has its name. Those that go along
with a request are noted on the messages, counted with their tokens, and joined as the
bytes that they are only once the request is whole.
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

# Of a request: the newest go along, of the others the name.
MOST_OF_REQUEST = 10

# Tokens of an image by its width and height.
Measure = Callable[[int, int], int]
Places = Mapping[int, Sequence[Mapping[str, Any]]]


class ImageSource:
    """Where the images of conversations come from. As it is here, no model takes any
    and none can be sent."""

    def find_measure(self, conversation: "Conversation") -> Measure | None:
        """How the model of the conversation counts images; None: it takes none."""
        return None

    def find_kept(
        self, conversation: "Conversation", images: Sequence[SentImage]
    ) -> Sequence[SentImage]:
        """Those of these images whose bytes are there."""
        return []

    def read_urls(
        self, conversation: "Conversation", images: Sequence[SentImage]
    ) -> Mapping[SentImage, str]:
        """What a request has of each: its bytes as a data URL."""
        return {}


# The one that is asked.
current = ImageSource()


def note_images(
    conversation: "Conversation",
    messages: Sequence[BaseMessage],
    newest: Message | None = None,
) -> None:
    """Note on these messages which of their images go along with a request: the newest
    that the model takes. `newest`: the row of the last one, which may not be stored."""
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
    """Note the images of a request again from its references: number, place, tokens."""
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
    """Note the images of a request from its references for their tokens alone: their
    bytes are never read."""
    _mark_images(messages, (SentImage(seq, n, "", tokens) for seq, n, tokens in refs))


def _read_places(
    conversation: "Conversation",
    messages: Sequence[BaseMessage],
    newest: Message | None,
) -> dict[int, Sequence[Mapping[str, Any]]]:
    """The attachments of those messages that have any, by number. Only those of people:
    no provider takes an image as a part of a reply, which has its name."""
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
        # References of an import can name any message.
        if own and isinstance(message, HumanMessage):
            own.sort(key=lambda image: image.place)
            message.additional_kwargs[SENT_IMAGES] = tuple(own)


def images_of(messages: Iterable[BaseMessage]) -> list[SentImage]:
    """The images that are noted on these messages, in the order they are sent."""
    return [
        image
        for message in messages
        for image in message.additional_kwargs.get(SENT_IMAGES, ())
    ]


def without_bytes(wire: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages of a request for people: of images the kind and the size."""

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
    """The messages as they are sent: a text, and behind it the images noted on it. One
    whose bytes are gone is "", so the hash of the whole differs."""
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
