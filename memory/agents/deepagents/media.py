"""Embedded pictures and files of messages, as files of their own.

The form in which messages are written to a history file leaves embedded data out.
"""

import base64
import hashlib
import logging
import mimetypes
from typing import Any
from urllib.parse import unquote_to_bytes

from langchain_core.messages import BaseMessage

from .backend import FileCaller

logger = logging.getLogger(__name__)

TYPED = {"image", "audio", "video"}
NOT_SAVED = {"type": "text", "text": '<image error="failed_to_offload" />'}


class MediaSaver:
    """A folder of the backend for embedded data, saved once by its hash."""

    def __init__(self, files: FileCaller, folder: str) -> None:
        self.files = files
        self.folder = folder
        self._saved: dict[str, bool] = {}
        self.failures = 0

    def replace_media(self, message: BaseMessage) -> BaseMessage:
        """Return the message, or a copy with paths in place of embedded data."""
        if isinstance(message.content, str):
            return message
        blocks = message.content_blocks
        changed = [self._replace_block(block) for block in blocks]
        if changed == blocks:
            return message
        return message.model_copy(update={"content": changed})

    def _replace_block(self, block: Any) -> Any:
        found = find_data(block)
        if found is None:
            return block
        data, mime = decode_data_url(found)
        path = ""
        if data is not None:
            name = hashlib.sha256(data).hexdigest()[:16]
            suffix = mimetypes.guess_extension(mime) or ".bin"
            path = f"{self.folder}/{name}{suffix}"
        if data is None or not self._save(path, data):
            self.failures += 1
            return NOT_SAVED
        kind = mime.partition("/")[0]
        if kind in TYPED:
            return {"type": kind, "url": path}
        return {"type": "text", "text": f'<file url="{path}" />'}

    def _save(self, path: str, data: bytes) -> bool:
        if path not in self._saved:
            try:
                responses = self.files.call_function("upload_files", [(path, data)])
                error = responses[0].error if responses else "no result"
            except Exception as raised:  # noqa: BLE001 - the backend of the caller
                error = type(raised).__name__
            if error:
                logger.warning("media not saved path=%s error=%s", path, error)
            self._saved[path] = not error
        return self._saved[path]


def find_data(block: Any) -> str | None:
    """Return the embedded data of a content block, as a data URL."""
    if not isinstance(block, dict):
        return None
    if block.get("base64"):
        mime = block.get("mime_type") or "application/octet-stream"
        return f"data:{mime};base64,{block['base64']}"
    picture = block.get("image_url")
    address = picture.get("url") if isinstance(picture, dict) else block.get("url")
    is_data = isinstance(address, str) and address.startswith("data:")
    return address if is_data else None


def decode_data_url(data_url: str) -> tuple[bytes | None, str]:
    """Return the bytes of a data URL and their type; None if they can't be read."""
    header, comma, payload = data_url.removeprefix("data:").partition(",")
    mime, *options = header.lower().split(";")
    mime = mime or "application/octet-stream"
    try:
        is_base64 = "base64" in options
        data = base64.b64decode(payload) if is_base64 else unquote_to_bytes(payload)
    except ValueError:
        return None, mime
    return (data if comma else None), mime
