"""Files that people have uploaded and not sent yet, and the bytes of images."""

import uuid

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from memory.models import Conversation, Message, PrivateRow


class Upload(models.Model):
    """The text of a file, until a message takes it or a day has passed.

    Once it is sent it belongs to the message, and this row is deleted.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="uploads"
    )
    name = models.CharField(max_length=120)
    kind = models.CharField(max_length=20, blank=True)
    size = models.PositiveIntegerField()
    text = models.TextField()
    # Of an image: what memory/engine/attachments.py::Image says, and its bytes.
    image = models.JSONField(null=True, blank=True)
    data = models.BinaryField(null=True, blank=True)
    small = models.BinaryField(null=True, blank=True)
    # Of a long file: what LongText says there. Its passages are of this key.
    long = models.JSONField(null=True, blank=True)
    # Of a text that is in one of several encodings, of which its owner has to choose
    # one: their codecs. Its bytes are in `data`, and it has no text yet.
    readings = models.JSONField(null=True, blank=True)
    tokens = models.PositiveIntegerField()
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)

    class Meta:
        # Named before the app; existing databases keep it.
        db_table = "memory_upload"
        default_permissions = ()
        verbose_name, verbose_name_plural = _("upload"), _("uploads")

    def __str__(self) -> str:
        # Never the name, which a user chose.
        return f"Upload {str(self.id)[:8]}"


class ImageFile(PrivateRow):
    """The bytes of an image as models get it, and of a small copy for the page.

    The message describes the image and has its hash.
    """

    conversation = models.ForeignKey(
        Conversation, models.CASCADE, related_name="image_files"
    )
    message = models.ForeignKey(Message, models.CASCADE, related_name="image_files")
    # The id of the upload, by which the message names it.
    file_id = models.UUIDField()
    type = models.CharField(max_length=20)
    size = models.PositiveIntegerField()
    data = models.BinaryField()
    small = models.BinaryField()

    class Meta(PrivateRow.Meta):
        verbose_name, verbose_name_plural = _("image"), _("images")
        constraints = [
            models.UniqueConstraint(
                fields=["message", "file_id"], name="image_file_of_message"
            ),
        ]


class LongFile(models.Model):
    """A text that is too long for a message, stored in passages.

    Messages that name its hash use it; it is deleted with the last of them. Its key is
    that of the upload.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="long_files"
    )
    # As memory/engine/attachments.py::LongText says it.
    sha256 = models.CharField(max_length=64)
    chars = models.PositiveIntegerField()
    # True once all of its passages are stored.
    is_whole = models.BooleanField(default=False)

    class Meta:
        default_permissions = ()
        verbose_name, verbose_name_plural = _("long file"), _("long files")

    def __str__(self) -> str:
        return f"LongFile {str(self.id)[:8]}"


class LongFileUse(PrivateRow):
    """A message that has a long file, which copies of the message have, too."""

    conversation = models.ForeignKey(
        Conversation, models.CASCADE, related_name="long_file_uses"
    )
    message = models.ForeignKey(Message, models.CASCADE, related_name="long_file_uses")
    file = models.ForeignKey(LongFile, models.CASCADE, related_name="uses")

    class Meta(PrivateRow.Meta):
        constraints = [
            models.UniqueConstraint(
                fields=["message", "file"], name="long_file_of_message"
            ),
        ]


class FilePassage(PrivateRow):
    """A passage of a long file, numbered from 1, with its terms for the index.

    All passages together are the text. A migration creates the database's own text
    index.
    """

    file = models.ForeignKey(LongFile, models.CASCADE, related_name="passages")
    number = models.PositiveIntegerField()
    start = models.PositiveIntegerField()
    end = models.PositiveIntegerField()
    # The page on which it begins, if the file has pages.
    page = models.PositiveIntegerField(null=True)
    text = models.TextField()
    terms = models.TextField()

    class Meta(PrivateRow.Meta):
        constraints = [
            models.UniqueConstraint(
                fields=["file", "number"], name="file_passage_number"
            ),
        ]
