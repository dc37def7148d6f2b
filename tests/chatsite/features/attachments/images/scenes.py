"""Images that were uploaded, and messages that have them."""

import hashlib
import uuid

from chatsite.features.attachments import uploads
from chatsite.features.attachments.images.reading import ReadImage
from chatsite.features.attachments.reading import ReadFile
from chatsite.turns import commands
from memory.engine.attachments import Image, describe_image

from . import pictures


def keep_image(owner, name="cat.png", size=(40, 30), colour="red", data=None):
    """An upload as the program that reads images leaves it."""
    data = data or pictures.make("PNG", size, colour)
    said = Image(hashlib.sha256(data).hexdigest(), "image/png", *size)
    read = ReadImage(said, data, pictures.make("JPEG", size, colour))
    text = describe_image(name, said, len(data))
    return uploads.store_upload(owner, ReadFile(name, "png", len(data), text, read))


def send_images(conversation, *rows, text="What is this?", **values):
    values = {"text": text, "client_id": uuid.uuid4().hex, "run": False, **values}
    ids = [str(row.pk) for row in rows or [keep_image(conversation.owner)]]
    return commands.send_message(conversation, attachments=ids, **values).message
