"""What there is to know of a wire."""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import BaseMessage

from .errors import WireError
from .reading import ReplyReader
from .rows import Row

Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Wire:
    """Its name as requests are kept with it, its paths here with their methods, and the
    provider's path."""

    name: str
    paths: Mapping[str, str]
    upstream_path: str
    reader: type[ReplyReader]
    write_error: Callable[[WireError], bytes]
    # The address of the provider, and the headers that let this site in; None: there is
    # none, and the demo model answers.
    find_upstream: Callable[[], tuple[str, dict[str, str]] | None]
    # The provider, as pages say it.
    name_upstream: Callable[[], str]
    # What the system says before all else.
    read_instructions: Callable[[Body], str]
    # The rows of the transcript that a message of the body is.
    make_rows: Callable[[Mapping[str, Any]], list[Row]]
    # What the demo model is asked, and its reply as a server of the wire would send it.
    to_demo_messages: Callable[[Body], list[BaseMessage]]
    write_reply: Callable[[Body, str, AsyncIterator[str]], AsyncIterator[bytes]]
    # Where tokens are counted; "" = nowhere.
    count_path: str = ""


def list_sent(body: Body) -> list[dict[str, Any]]:
    """What the page shows of a request as JSON."""
    messages = body.get("messages")
    return messages if isinstance(messages, list) else []


def wants_stream(body: Body) -> bool:
    return body.get("stream") is True
