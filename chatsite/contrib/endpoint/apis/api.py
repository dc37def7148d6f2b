"""The description of an API that clients use."""

import re
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import BaseMessage

from chatsite.contrib.endpoint.addresses import MODELS

from .errors import ApiError
from .reply_reader import ReplyReader
from .rows import TranscriptRow

Body = Mapping[str, Any]
# An id in a path.
ID = re.compile(r"[A-Za-z0-9_\-=]{1,300}")


def list_messages(body: Body) -> list[dict[str, Any]]:
    messages = body.get("messages")
    return messages if isinstance(messages, list) else []


def list_declared_tools(body: Body) -> list[Any]:
    tools = body.get("tools")
    return tools if isinstance(tools, list) else []


def list_openai_models(models: list[dict[str, Any]]) -> dict[str, Any]:
    return {"object": "list", "data": models}


@dataclass(frozen=True, slots=True)
class Api:
    """An API, with its functions.

    Its name as stored with requests, its paths here with their methods, and the
    provider's path.
    """

    name: str
    paths: Mapping[str, str]
    upstream_path: str
    reader: type[ReplyReader]
    write_error: Callable[[ApiError], bytes]
    # Returns the address of a model's provider and the site's headers for it; None:
    # there is none, and the demo model answers.
    find_upstream: Callable[[str], tuple[str, dict[str, str]] | None]
    # Returns the name of a model's provider, as pages show it.
    name_upstream: Callable[[str], str]
    # Returns the text of the system prompt.
    read_instructions: Callable[[Body], str]
    # Returns the transcript rows of a message.
    make_rows: Callable[[Mapping[str, Any]], list[TranscriptRow]]
    # Return the messages for the demo model, and its reply as the API sends it.
    to_demo_messages: Callable[[Body], list[BaseMessage]]
    write_reply: Callable[[Body, str, AsyncIterator[str]], AsyncIterator[bytes]]
    # What a token costs that is written to the cache for long, in tokens of the input.
    long_factor: float = 1.25
    # The path where tokens are counted, or "".
    count_path: str = ""
    # How the provider is asked for its models, and how a client gets them.
    models_path: str = "/models"
    models_headers: Mapping[str, str] = field(default_factory=dict)
    list_models: Callable[[list[dict[str, Any]]], dict[str, Any]] = list_openai_models
    # The field of the body with the history, and how it is read; pages show it as JSON.
    list_name: str = "messages"
    list_sent: Callable[[Body], list[dict[str, Any]]] = list_messages
    # Returns the tools that the model has at the end of the history.
    list_tools: Callable[[Body], list[Any]] = list_declared_tools
    # Returns a message by its place in that list, as `make_rows` takes it.
    take_message: Callable[[list[dict[str, Any]], int, int], Mapping[str, Any]] = (
        lambda messages, start, _end: messages[start]
    )
    # The path before the id of a stored reply; "" = none can be fetched.
    id_path: str = ""
    # Returns the id of the reply that a body continues instead of sending the messages
    # before it; "" = none. Then the field that names it, and the error code for an
    # unknown one.
    read_previous: Callable[[Body], Any] = lambda _body: ""
    previous_field: str = ""
    not_found_code: str = "not_found"
    # The provider holds the system prompt and the tools with the messages.
    holds_setup: bool = False

    @property
    def names_replies(self) -> bool:
        """True if a body can name an earlier reply instead of a history."""
        return self.list_name == "input"

    def find_method(self, path: str) -> str | None:
        """Return the method of this path; None: it is no path of this API."""
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
