"""The request of a file: what left, byte for byte, or why that is not known."""

import base64
import hashlib
import json
import re
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from html import escape
from typing import Any

from chatsite.turns import requests
from memory.context import RequestContext
from memory.engine.compose import dump_body, dump_wire
from memory.models import Conversation, ModelCall
from memory.prompts import hash_text
from memory.view import rebuilding

# The bytes of images in a body, in the forms of the APIs.
IMAGE = re.compile(r'((?<=;base64,)|(?<="data":"))([A-Za-z0-9+/]{40,}={0,2})(?=")')
MEDIA_TYPES = {
    b"\x89PNG": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"RIFF": "image/webp",
}
ERASED = "a part of it was erased after it was sent"
CHANGED = "its parts are no longer what was sent"
WITHOUT_IMAGES = "its images are in the file by their hashes only"
# The sections that are quoted or that the site writes.
QUOTED = ("system", "summaries", "pinned", "facts", "rules", "recalled")


@dataclass(frozen=True)
class ProvenRequest:
    """A request and its text: of a recorded `call`, or the next one.

    `covers` says what the text is: the "body", or only its "messages", where the body
    is not known. `missing` says why there is no text.
    """

    built: RequestContext
    call: ModelCall | None
    text: str
    sha256: str
    covers: str
    missing: str = ""
    fields: str = "{}"

    @property
    def reply(self) -> int | None:
        message = self.call and self.call.message
        return message.seq if message else None

    @property
    def at(self) -> datetime | None:
        return self.call.created_at if self.call else None

    @property
    def model(self) -> str:
        return self.call.model if self.call else self.built.model

    @property
    def held(self) -> set[int]:
        """The messages that the provider has from earlier requests."""
        read_held = self.built.read_held
        return (
            {int(each.id or 0) for each in read_held().messages} if read_held else set()
        )

    @cached_property
    def images(self) -> dict[str, str]:
        """The images in the text, as base64, by the hash of their bytes."""
        found = (match[2] for match in IMAGE.finditer(self.text))
        return {_hash_image(each): each for each in found if _find_image_type(each)}

    @cached_property
    def said(self) -> str:
        """Every text in the request, as verify.py reads it."""
        said: list[str] = []
        json.loads(
            self.text or "{}",
            object_hook=lambda each: said.extend(map(str, each.values())),
        )
        return "\n".join(said)

    @cached_property
    def sections(self) -> dict[str, str]:
        """The sections around the window that are in the request word for word."""
        found = {
            section.kind: "\n".join(message.text for message in section.messages)
            for section in self.built.context.sections
            if section.kind in QUOTED
        }
        return {kind: text for kind, text in found.items() if self.has_text(text)}

    def has_text(self, text: str) -> bool:
        return text in self.said or escape(text, quote=False) in self.said

    def describe_request(self, *, with_images: bool) -> dict[str, Any]:
        missing = self.missing
        if self.images and not with_images:
            missing = missing or WITHOUT_IMAGES
        call = self.call
        return {
            "kind": "sent" if call else "next",
            "sent_at": call.created_at.isoformat() if call else None,
            "covers": self.covers,
            "sha256": self.sha256,
            "body": self._split_text(),
            "missing": missing,
            "images": [
                {
                    "sha256": sha256,
                    "media_type": _find_image_type(data),
                    "bytes": len(base64.b64decode(data)),
                }
                for sha256, data in self.images.items()
            ],
            "model": self.model,
            "provider": call.provider if call else "",
            "parameters": self.fields,
            "tools": [_name_definition(each) for each in self.built.tools],
            "refs": json.dumps(self.built.refs, sort_keys=True),
            "tokens": {
                "estimated": self.built.tokens,
                "input": call.tokens_input if call else None,
                "cached": call.tokens_cached if call else None,
                "output": call.tokens_output if call else None,
            },
        }

    def _split_text(self) -> list[str]:
        """Return the text in pieces; a hash is the piece of an image."""
        names = {data: sha256 for sha256, data in self.images.items()}
        pieces, end = [], 0
        for match in IMAGE.finditer(self.text):
            if match[2] in names:
                pieces += [self.text[end : match.start()], names[match[2]]]
                end = match.end()
        return [*pieces, self.text[end:]] if self.text else []


def find_proven_request(conversation: Conversation, reply: int | None) -> ProvenRequest:
    """Return the request of a reply, else the next one.

    In a conversation that a client writes, that is the one it sent last. Raises
    ModelCall.DoesNotExist for a number that is no reply.
    """
    if reply is None:
        built = requests.next_turn(conversation)
        if not rebuilding.EXTERNAL & built.refs.keys():
            return _describe_next(built)
        calls = conversation.model_calls.filter(purpose=ModelCall.Purpose.REPLY)
        return _describe_recorded(calls.latest("pk"), built)
    call = requests.reply_call(conversation, reply)
    if call is None:
        raise ModelCall.DoesNotExist
    return _describe_recorded(call, rebuilding.rebuild_context(call))


def _describe_next(built: RequestContext) -> ProvenRequest:
    try:
        body = requests.make_body(built)
    except LookupError:  # the site does not have the model any more
        text = dump_wire(built.wire)
        return ProvenRequest(built, None, text, built.sha256, "messages")
    others = {n: body[n] for n in body.keys() - {"model", "messages", "tools"}}
    text = dump_body(body).decode()
    others = json.dumps(others, sort_keys=True)
    return ProvenRequest(built, None, text, hash_text(text), "body", "", others)


def _describe_recorded(call: ModelCall, built: RequestContext) -> ProvenRequest:
    others = json.dumps(call.body_fields, sort_keys=True)
    covers, recorded = "body", rebuilding.find_body_hash(call)
    if rebuilding.EXTERNAL & call.refs.keys():
        text = built.body.decode(errors="replace")
    elif recorded:
        text = dump_body(rebuilding.make_sent_body(call, built)).decode()
    else:
        covers, recorded, text = "messages", call.sha256, dump_wire(built.wire)
    missing = ERASED if rebuilding.is_erased(call) else ""
    if not missing and hash_text(text) != recorded:
        missing = CHANGED
    text = "" if missing else text
    return ProvenRequest(built, call, text, recorded, covers, missing, others)


def _hash_image(data: str) -> str:
    return hashlib.sha256(base64.b64decode(data)).hexdigest()


def _find_image_type(data: str) -> str:
    """Return the type of an image in base64; "" if it is none."""
    if len(data) % 4:
        return ""
    begins = base64.b64decode(data[:8])
    is_same = base64.b64encode(base64.b64decode(data)).decode() == data
    found = (MEDIA_TYPES[each] for each in MEDIA_TYPES if begins.startswith(each))
    return next(found, "") if is_same else ""


def _name_definition(definition: Any) -> str:
    known = definition if isinstance(definition, dict) else {}
    function = known.get("function")
    named = function if isinstance(function, dict) else known
    return str(named.get("name") or named.get("type") or "")
