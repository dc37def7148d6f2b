"""The description of an API that clients use."""

import re
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from itertools import takewhile
from typing import Any

from langchain_core.messages import BaseMessage, SystemMessage

from chatsite.contrib.endpoint.addresses import MODELS

from .errors import ApiError
from .reply_reader import ReplyReader
from .rows import TranscriptRow, read_part_texts, to_langchain

Body = Mapping[str, Any]
# An id in a path.
ID = re.compile(r"[A-Za-z0-9_\-=]{1,300}")


def list_declared_tools(body: Body) -> list[Any]:
    tools = body.get("tools")
    return tools if isinstance(tools, list) else []


def wants_stream(body: Body) -> bool:
    return body.get("stream") is True


class Api:
    """An API: the fields of its requests, its errors and its replies.

    Each has a subclass with its name as stored with requests, its paths here with their
    methods, and the provider's path.
    """

    name: str
    paths: Mapping[str, str]
    upstream_path: str
    reader: type[ReplyReader]
    # What a token costs that is written to the cache for long, in tokens of the input.
    long_factor = 1.25
    # The path where tokens are counted, or "".
    count_path = ""
    # How the provider is asked for its models.
    models_path = "/models"
    models_headers: Mapping[str, str] = {}
    # The field of the body with the history; pages show it as JSON.
    list_name = "messages"
    # The roles of instructions in the history, and the types of what says nothing.
    system_roles: Collection[str] = ()
    silent_types: Collection[str] = ()
    # The path before the id of a stored reply; "" = none can be fetched.
    id_path = ""
    # The field with the id of an earlier reply, and the error code for an unknown one.
    previous_field = ""
    not_found_code = "not_found"
    # The provider holds the system prompt and the tools with the messages.
    holds_setup = False

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

    def find_upstream(self, model: str) -> tuple[str, dict[str, str]] | None:
        """Return the address of a model's provider and the site's headers for it.

        Return None if there is none, and the demo model answers. Raise ApiError.
        """
        raise NotImplementedError

    def name_upstream(self, model: str) -> str:
        """Return the name of a model's provider, as pages show it."""
        raise NotImplementedError

    def write_error(self, error: ApiError) -> bytes:
        raise NotImplementedError

    def list_models(self, models: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the list of models as a client gets it."""
        return {"object": "list", "data": models}

    def list_setup(self, _body: Body) -> list[str]:
        """Return the texts of instructions that are not in the history."""
        return []

    def list_sent(self, body: Body) -> list[dict[str, Any]]:
        """Return the history."""
        sent = body.get(self.list_name)
        return sent if isinstance(sent, list) else []

    def list_tools(self, body: Body) -> list[Any]:
        """Return the tools that the model has at the end of the history."""
        return list_declared_tools(body)

    def read_previous(self, _body: Body) -> Any:
        """Return the id of the reply that a body continues, or "".

        Such a body does not have the messages before it.
        """
        return ""

    def make_rows(self, sent: Sequence[Mapping[str, Any]]) -> list[TranscriptRow]:
        """Return the transcript rows of one message, as the history has it."""
        raise NotImplementedError

    def write_reply(
        self, body: Body, model: str, pieces: AsyncIterator[str]
    ) -> AsyncIterator[bytes]:
        """Yield the demo model's reply as this API sends it."""
        raise NotImplementedError

    def _is_system(self, message: object) -> bool:
        return isinstance(message, dict) and message.get("role") in self.system_roles

    def read_instructions(self, body: Body) -> str:
        """Return the text of the system prompt, with the leading system messages."""
        leading = takewhile(self._is_system, self.list_sent(body))
        texts = (read_part_texts(message.get("content")) for message in leading)
        return "\n\n".join([*self.list_setup(body), *texts])

    def to_demo_messages(self, body: Body) -> list[BaseMessage]:
        """Return the messages for the demo model."""
        made: list[BaseMessage] = [*map(SystemMessage, self.list_setup(body))]
        for message in self.list_sent(body):
            if self._is_system(message):
                made.append(SystemMessage(read_part_texts(message.get("content"))))
            elif message.get("type") not in self.silent_types:
                made += map(to_langchain, self.make_rows([message]))
        return made
