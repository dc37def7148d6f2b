"""The interface of a store: bounded look-ups in the conversations of one user.

Conversations that were deleted are never returned. `decision.py::list_chains` lists the
chains and messages that a store keeps. Nothing here writes.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

# Limits of one look-up: hashes, and places of each.
MOST_HASHES = 64
MOST_PLACES = 8


class Place(NamedTuple):
    """The place of a message in a stored conversation."""

    conversation: str
    # From 0 on; messages that are shared with parents count.
    position: int
    # The first of the conversations that are branches of each other.
    family: str
    # The client's id of the conversation, as in `Hints.conversation`, or "".
    client: str = ""
    # Nothing follows it in this conversation.
    is_tip: bool = False
    # A request ends here without a complete reply: it runs, failed or was stopped.
    is_open: bool = False
    # The conversation is one request of one message, or a side call.
    is_single: bool = False


class PathMessage(NamedTuple):
    """A message of a conversation, as alignments compare it."""

    digest: bytes
    role: str
    # Size of the canonical text in bytes of UTF-8.
    size: int
    # Served by this site, not only claimed by a client.
    is_served: bool = False


class Known(Protocol):
    """A store of one user's conversations.

    Each hash has at most MOST_PLACES places: tips first, then the newest.
    """

    def find_chains(self, chains: Sequence[bytes]) -> Mapping[bytes, Sequence[Place]]:
        """Return the places where these chains end, without unknown chains."""

    def find_messages(
        self, digests: Sequence[bytes]
    ) -> Mapping[bytes, Sequence[Place]]:
        """Return the places of these messages, without unknown ones."""

    def find_client(self, client: str) -> Sequence[Place]:
        """Return the tips of the conversations with this client id, newest first.

        With "", those of conversations without a client id.
        """

    def find_request(self, key: str) -> Place | None:
        """Return the last message of an earlier request with this idempotency key."""

    def read_path(self, conversation: str, first: int) -> Sequence[PathMessage]:
        """Return the messages of a conversation from this position on.

        Messages that it shares with its parents are included. Each is the version that
        the client sent last.
        """

    def read_text(self, conversation: str, position: int) -> str:
        """Return the canonical text of a message (`history.py::text_of_parts`).

        It is the version that the client sent last.
        """

    def read_instructions(self, conversation: str) -> str:
        """Return the instructions of its last request; "" if none or unknown."""

    def has_spoken(self, conversation: str, instructions: str, tools: str) -> bool:
        """Return whether a request of it had these instructions or these tools.

        `tools` is a `History.tools`. Also true if those of its last request are
        unknown.
        """
