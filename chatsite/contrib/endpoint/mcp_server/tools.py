"""The tools of the MCP server: their arguments and their descriptions.

Nothing here depends on the protocol.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from django.urls import reverse
from pydantic import BaseModel, ConfigDict, Field

from chatsite.contrib.endpoint.models import ApiKey
from memory import library
from memory.models import Conversation, ModelCall
from memory.transcript import LAST_SEQ

from . import sent_requests, transcripts
from .transcripts import NotReadableError, TranscriptPosition

# The result of a call, and the conversation that it read; None: no single one.
Answer = tuple[dict[str, Any], Conversation | None]


@dataclass(frozen=True, slots=True)
class ToolCaller:
    """The key that a call reads with, and the base of the site's addresses."""

    key: ApiKey
    site: str

    @property
    def owner_id(self) -> int:
        return self.key.owner_id

    def find_own(self, uuid: UUID) -> Conversation:
        """Return the owner's conversation.

        Raise the same NotReadableError for a missing, deleted, temporary or foreign
        one.
        """
        found = library.list_own(self.key.owner).filter(uuid=uuid).first()
        if found is None:
            raise NotReadableError("There is no such conversation.")
        return found

    def make_address(self, uuid: UUID, seq: int | None = None) -> str:
        page = self.site + reverse("conversation-detail", args=[uuid])
        return page if seq is None else f"{page}?at={seq}#message-{seq}"

    def describe_row(self, conversation: Conversation) -> dict[str, Any]:
        return {
            "conversation": conversation.uuid,
            "title": conversation.title,
            "address": self.make_address(conversation.uuid),
        }


@dataclass(frozen=True, slots=True)
class McpTool:
    name: str
    title: str
    arguments: type[BaseModel]
    run: Callable[[ToolCaller, Any], Answer]

    @property
    def description(self) -> str:
        return " ".join((self.arguments.__doc__ or "").split())


class Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class InConversation(Arguments):
    conversation: UUID
    """The id of a conversation."""


class ListConversations(Arguments):
    """List the user's conversations, those with the latest change first.

    Where there are more, the answer has `next`: call again with these arguments.
    """

    archived: bool = False
    """Those in the archive instead."""
    limit: int = Field(20, ge=1, le=50)
    after: str = Field("", max_length=100)
    """From `next` of an answer."""


class SearchTranscripts(Arguments):
    """Find messages of the user that have all of these words.

    The newest come first, with the text around them. Endings of words don't matter; the
    whole query is also found within words. Read on with read_messages.
    """

    query: str = Field(min_length=1, max_length=200)
    conversation: UUID | None = None
    """Only in this one."""
    limit: int = Field(10, ge=1, le=transcripts.MAX_FOUND)


class ReadMessages(InConversation):
    """Read the messages of a conversation in their order, word for word.

    These are messages of the user, of the model, its tool calls and their results. A
    long conversation comes in parts: while the answer has `next`, call again with these
    arguments.
    """

    from_message: int = Field(1, ge=0, le=LAST_SEQ)
    from_character: int = Field(0, ge=0, le=2**31 - 1)
    """Where to go on in that message."""
    limit: int = Field(50, ge=1, le=100)


class InReply(InConversation):
    reply: int = Field(ge=1, le=LAST_SEQ)
    """The number of a message of the model."""


class WhatTheModelSaw(InReply):
    """Read exactly what a model was sent for one of its replies, as JSON.

    Of a client that is the body of its request, of the site's own requests the
    messages; with the address of the page that shows it and the SHA-256 that was stored
    when it was sent. `is_proved`: rebuilt now, it has this hash. `is_text_of_hash`: so
    do all parts of `text`, joined and encoded as UTF-8. While the answer has `next`,
    call again with it.
    """

    from_character: int = Field(0, ge=0, le=2**31 - 1)


class WhatWasLeftOut(InReply):
    """List the messages before a reply that its model was not sent word for word.

    Also why: they are in a summary (`version`), did not fit, were hidden or replaced,
    or the client did not send them. `sent_in_part`: messages that were sent shorter
    than they are. `recalled`: messages of which passages were found and sent.
    """

    from_message: int = Field(0, ge=0, le=LAST_SEQ)


def answer_conversations(caller: ToolCaller, given: ListConversations) -> Answer:
    rows, following = transcripts.list_own_conversations(
        caller.key.owner, given.after, given.limit, is_archived=given.archived
    )
    found = [
        caller.describe_row(row) | transcripts.describe_in_list(row) for row in rows
    ]
    more = {"archived": given.archived, "limit": given.limit, "after": following}
    return {"conversations": found} | ({"next": more} if following else {}), None


def answer_search(caller: ToolCaller, given: SearchTranscripts) -> Answer:
    within = caller.find_own(given.conversation) if given.conversation else None
    hits = transcripts.find_in_transcripts(
        caller.key.owner, given.query, within, given.limit
    )
    found = [
        caller.describe_row(message.conversation)
        | words
        | {"address": caller.make_address(message.conversation.uuid, message.seq)}
        for message, words in hits
    ]
    return {"found": found}, within


def answer_transcript(caller: ToolCaller, given: ReadMessages) -> Answer:
    conversation = caller.find_own(given.conversation)
    begin = TranscriptPosition(given.from_message, given.from_character)
    rows, following = transcripts.read_transcript(conversation, begin, given.limit)
    value = caller.describe_row(conversation) | {"messages": rows}
    if following:
        value["next"] = {
            "conversation": conversation.uuid,
            "from_message": following.seq,
            "from_character": following.character,
            "limit": given.limit,
        }
    return value, conversation


def answer_of_reply(
    describe: Callable[[ModelCall, int], tuple[dict[str, Any], int | None]],
    name: str,
    caller: ToolCaller,
    given: InReply,
) -> Answer:
    """Return the part of a description that begins at the argument of this name."""
    conversation = caller.find_own(given.conversation)
    call = sent_requests.find_call(conversation, given.reply)
    found, following = describe(call, getattr(given, name))
    address = caller.make_address(conversation.uuid, given.reply)
    value = caller.describe_row(conversation)
    value |= {"reply": given.reply, "address": address}
    if following is not None:
        place = {"conversation": conversation.uuid, "reply": given.reply}
        found["next"] = {**place, name: following}
    return value | found, conversation


TOOLS: Mapping[str, McpTool] = {
    tool.name: tool
    for tool in (
        McpTool(
            "list_conversations",
            "List conversations",
            ListConversations,
            answer_conversations,
        ),
        McpTool(
            "search_transcripts", "Search messages", SearchTranscripts, answer_search
        ),
        McpTool("read_messages", "Read messages", ReadMessages, answer_transcript),
        McpTool(
            "what_the_model_saw",
            "What the model saw",
            WhatTheModelSaw,
            partial(answer_of_reply, sent_requests.describe_request, "from_character"),
        ),
        McpTool(
            "what_was_left_out",
            "What was left out",
            WhatWasLeftOut,
            partial(answer_of_reply, sent_requests.describe_left_out, "from_message"),
        ),
    )
}
