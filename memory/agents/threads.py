"""The messages of an agent's thread, as the engine wants them.

They are numbered by their place: an id may be missing, and a message may be edited or
removed. What a summary stands for is therefore proved by a digest of the messages.
"""

import hashlib
import json
from collections.abc import Sequence

from langchain_core.messages import BaseMessage, SystemMessage
from langchain_core.runnables.config import ensure_config

from .stores import Segment, ThreadMemory

Messages = Sequence[BaseMessage]


def split_system(messages: Messages) -> tuple[list[BaseMessage], list[BaseMessage]]:
    """System messages at the start, which are never summarised, and the others."""
    places = range(len(messages))
    is_other = (n for n in places if not isinstance(messages[n], SystemMessage))
    start = next(is_other, len(messages))
    return list(messages[:start]), list(messages[start:])


def number(messages: Messages, first: int) -> list[BaseMessage]:
    """Copies with their numbers as ids."""
    return [
        message.model_copy(update={"id": str(seq)})
        for seq, message in enumerate(messages, start=first)
    ]


def find_active(memory: ThreadMemory, messages: Messages) -> tuple[Segment, ...]:
    """The summaries that still stand for exactly the messages they were made of.

    From the first one on that does not, all are left out: its messages, and those
    after them, are back in the window and will be summarised again.
    """
    active: list[Segment] = []
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
    """The digest of messages 1..end for each of the rising ends; "" beyond the last."""
    running = hashlib.sha256()
    digests = []
    place = 0
    for end in ends:
        for message in messages[place:end]:
            running.update(_canonical(message))
        place = max(place, end)
        digests.append(running.hexdigest() if 0 < end <= len(messages) else "")
    return digests


def _canonical(message: BaseMessage) -> bytes:
    calls = getattr(message, "tool_calls", [])
    answers = getattr(message, "tool_call_id", "")
    parts = [message.type, message.content, calls, answers]
    text = json.dumps(parts, ensure_ascii=False, sort_keys=True, default=repr)
    return text.encode("utf-8", "surrogatepass") + b"\0"


def thread_key(thread_id: object) -> str:
    return f"thread:{thread_id}"


def find_thread(body: Messages) -> str:
    """The key of the thread that is running.

    Without a thread id it is its first message: a summary is used only where all the
    messages it was made of are the same, so nobody sees what is not theirs.
    """
    thread_id = ensure_config().get("configurable", {}).get("thread_id")
    if thread_id is not None:
        return thread_key(thread_id)
    return "first:" + digest_prefixes(body, [1])[0]
