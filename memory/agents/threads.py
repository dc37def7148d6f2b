"""The messages of an agent's thread, in the form that the engine needs.

They are numbered by their place: an id may be missing, and a message may be edited or
removed. So a digest of its messages proves that a summary still covers them.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from itertools import takewhile
from json.encoder import encode_basestring

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage
from langchain_core.runnables.config import ensure_config

from .stores import UNSTORABLE, SummarySegment, ThreadMemory

Messages = Sequence[BaseMessage]
MAX_ID_CHARS = 200
# The address in the default representation of an object.
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def split_system(messages: Messages) -> tuple[list[BaseMessage], list[BaseMessage]]:
    """Return the system messages at the start, which stay, and the others."""
    head = list(takewhile(lambda each: isinstance(each, SystemMessage), messages))
    return head, list(messages[len(head) :])


def number_messages(messages: Messages, first: int) -> list[BaseMessage]:
    """Return copies with their numbers as ids."""
    return [
        message.model_copy(update={"id": str(seq)})
        for seq, message in enumerate(messages, start=first)
    ]


def find_active(memory: ThreadMemory, messages: Messages) -> tuple[SummarySegment, ...]:
    """Return the summaries whose messages are unchanged.

    From the first one with a changed message on, all are left out: these messages and
    all after them are in the window again, and will be summarised again.
    """
    active: list[SummarySegment] = []
    digests = digest_prefixes(messages, [s.block.last_seq for s in memory.segments])
    expected = 1
    for segment, digest in zip(memory.segments, digests, strict=True):
        block = segment.block
        if block.first_seq != expected or segment.digest != digest:
            break
        active.append(segment)
        expected = block.last_seq + 1
    return tuple(active)


def digest_prefixes(messages: Messages, ends: Sequence[int]) -> list[str]:
    """Return the digest of messages 1..end for each of the rising ends.

    It is "" for an end beyond the last message.
    """
    running = hashlib.sha256()
    digests = []
    place = 0
    for end in ends:
        for message in messages[place:end]:
            running.update(
                _encode_message(message).encode("utf-8", "surrogatepass") + b"\0"
            )
        place = max(place, end)
        digests.append(running.hexdigest() if 0 < end <= len(messages) else "")
    return digests


def _describe_value(value: object) -> str:
    """Return a text for a value that is no JSON, the same in every process."""
    if isinstance(value, (set, frozenset)):
        return repr(sorted(map(_describe_value, value)))
    return ADDRESS.sub("", repr(value))


def _encode_message(message: BaseMessage) -> str:
    """Return all content of a message, as JSON."""
    content = message.content
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    answers = message.tool_call_id if isinstance(message, ToolMessage) else ""
    if isinstance(content, str) and not calls:
        # The same output in a tenth of the time: each request reads the whole thread.
        texts = map(encode_basestring, (message.type, content, answers))
        return "[{}, {}, [], {}]".format(*texts)
    parts = [message.type, content, calls, answers]
    return json.dumps(
        parts, ensure_ascii=False, sort_keys=True, default=_describe_value
    )


def thread_key(thread_id: object) -> str:
    """Return the key of a thread in a store.

    An id that some stores refuse is hashed.
    """
    text = str(thread_id)
    if len(text) > MAX_ID_CHARS or UNSTORABLE.search(text):
        text = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"thread:{text}"


def find_thread(body: Messages) -> str:
    """Return the key of the thread that is running.

    Without a thread id it is made of the first message: a summary is used only if all
    of its messages are the same, so no thread sees a summary of other messages. An
    agent inside of another graph has the thread id of that graph, but messages of its
    own.
    """
    configurable = ensure_config().get("configurable", {})
    thread_id = configurable.get("thread_id")
    if thread_id is None:
        return _first_key(body)
    # Such as "tools:<task>|model:<task>": the graphs, and then the node in them.
    *graphs, _ = str(configurable.get("checkpoint_ns") or "").split("|")
    inside = [graph.partition(":")[0] for graph in graphs]
    own = [*inside, _first_key(body)] if inside else []
    return "|".join([thread_key(thread_id), *own])


def _first_key(body: Messages) -> str:
    return "first:" + digest_prefixes(body, [1])[0]
