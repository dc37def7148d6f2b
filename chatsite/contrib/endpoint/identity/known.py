"""What the rule asks of a store: bounded look-ups in the scope of one person.

A store answers for one person only, and only from conversations that were not deleted.
Rows of chains and messages are kept as `decision.py::list_chains` says. Nothing here
writes.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

# So many hashes are asked at once at most, and so many places are of interest of each.
MOST_HASHES = 64
MOST_PLACES = 8


class Place(NamedTuple):
    """A message of a kept conversation."""

    conversation: str
    # From 0 on, in the conversation with what it shares with its parents.
    position: int
    # The first of the conversations that are branches of each other.
    family: str
    # The id that the client gave the conversation, as in `Hints.conversation`, or "".
    client: str = ""
    # Nothing follows it in this conversation.
    is_tip: bool = False
    # A request ended here, and has no whole reply: it runs, failed or was stopped.
    is_open: bool = False
    # The conversation is one request of one message, or a side call.
    is_single: bool = False


class Kept(NamedTuple):
    """A message of a conversation, as alignments compare it."""

    digest: bytes
    role: str
    # Of the canonical text, in bytes of UTF-8.
    size: int
    # Served by this site, not only claimed by a client.
    is_served: bool = False


class Known(Protocol):
    """Of each hash, at most MOST_PLACES places: tips first, then newest first."""

    def find_chains(self, chains: Sequence[bytes]) -> Mapping[bytes, Sequence[Place]]:
        """The places where these chains end; what is not known is left out."""

    def find_messages(
        self, digests: Sequence[bytes]
    ) -> Mapping[bytes, Sequence[Place]]:
        """The places of these messages."""

    def find_client(self, client: str) -> Sequence[Place]:
        """The tips of the conversations with this id of the client ("": without one),
        those first in which something was said last."""

    def find_request(self, key: str) -> Place | None:
        """The last message of an earlier request with this idempotency key."""

    def read_path(self, conversation: str, first: int) -> Sequence[Kept]:
        """The messages of a conversation from this position on, with those that it
        shares with its parents; of each, the version that its client sent last."""

    def read_text(self, conversation: str, position: int) -> str:
        """The canonical text of a message (`history.py::text_of_parts`) in that
        version."""

    def read_instructions(self, conversation: str) -> str:
        """Those that its last request came with; "": none, or not known."""

    def has_spoken(self, conversation: str, instructions: str, tools: str) -> bool:
        """Return whether any request of it came with these instructions or these tools
        (`History.tools`), or those of its last one are not known."""
