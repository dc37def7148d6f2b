"""What there is to know of a wire."""

import re
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import BaseMessage

from chatsite.contrib.endpoint.addresses import MODELS

from .errors import WireError
from .reply_reader import ReplyReader
from .rows import TranscriptRow

Body = Mapping[str, Any]
# What stands for one thing in a path.
ID = re.compile(r"[A-Za-z0-9_\-=]{1,300}")


def list_messages(body: Body) -> list[dict[str, Any]]:
    messages = body.get("messages")
    return messages if isinstance(messages, list) else []


def take_one(messages: list[dict[str, Any]], start: int, _end: int) -> dict[str, Any]:
    return messages[start]


def list_openai_models(models: list[dict[str, Any]]) -> dict[str, Any]:
    return {"object": "list", "data": models}


@dataclass(frozen=True, slots=True)
class Wire:
    """Its name as requests are kept with it, its paths here with their methods, and the
    provider's path."""

    name: str
    paths: Mapping[str, str]
    upstream_path: str
    reader: type[ReplyReader]
    write_error: Callable[[WireError], bytes]
    # The address of a model's provider, and the headers that let this site in; None:
    # there is none, and the demo model answers.
    find_upstream: Callable[[str], tuple[str, dict[str, str]] | None]
    # The provider of a model, as pages say it.
    name_upstream: Callable[[str], str]
    # What the system says before all else.
    read_instructions: Callable[[Body], str]
    # The rows of the transcript that a message of the body is.
    make_rows: Callable[[Mapping[str, Any]], list[TranscriptRow]]
    # What the demo model is asked, and its reply as a server of the wire would send it.
    to_demo_messages: Callable[[Body], list[BaseMessage]]
    write_reply: Callable[[Body, str, AsyncIterator[str]], AsyncIterator[bytes]]
    # Where tokens are counted; "" = nowhere.
    count_path: str = ""
    # How the provider is asked for its models, and how a client is told them.
    models_path: str = "/models"
    models_headers: Mapping[str, str] = field(default_factory=dict)
    list_models: Callable[[list[dict[str, Any]]], dict[str, Any]] = list_openai_models
    # The list of the body that is the history, and how it is read: what the page shows
    # of a request as JSON.
    list_name: str = "messages"
    list_sent: Callable[[Body], list[dict[str, Any]]] = list_messages
    # A message by where it is in that list, as `make_rows` takes it.
    take_message: Callable[[list[dict[str, Any]], int, int], Mapping[str, Any]] = (
        take_one
    )
    # Before the id of a reply that can be fetched again; "" = none can.
    id_path: str = ""

    @property
    def names_replies(self) -> bool:
        """Whether a body can name an earlier reply in place of a history."""
        return self.list_name == "input"

    def find_method(self, path: str) -> str | None:
        """How this path is asked; None: it is none of this wire."""
        if method := self.paths.get(path):
            return method
        if path.startswith(f"{MODELS}/"):
            # A slash without a name is neither the list nor a model.
            return self.paths.get(MODELS) if path != f"{MODELS}/" else None
        is_one = self.id_path and path.startswith(self.id_path)
        is_one = is_one and ID.fullmatch(path.removeprefix(self.id_path))
        return "GET" if is_one else None


def wants_stream(body: Body) -> bool:
    return body.get("stream") is True
