"""Summarised messages, as a file for the model and an event in the private state."""

import logging
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Annotated, Any, NotRequired

from langchain.agents.middleware.types import AgentState, PrivateStateAttr
from langchain_core.messages import BaseMessage, HumanMessage, get_buffer_string
from typing_extensions import TypedDict

from ...engine.compose import SummaryBlock
from ...engine.tokens import TokenCounter, count_text
from .. import threads
from ..middleware import SUMMARY_MARK
from ..stores import SummarySegment, ThreadMemory
from ..view import AgentView
from .backend import FileCaller
from .media import MediaSaver

logger = logging.getLogger(__name__)

EVENT = "_summarization_event"
SESSION = "_summarization_session_id"
POINTER = """\
You are in the middle of a conversation that has been summarized. The full \
conversation history has been saved to {path} should you need to refer back to it for \
details. Each <summary> below is of the messages that it names.

"""


class SummarizationEvent(TypedDict):
    """The last summary of a thread. The first four keys are Deep Agents' own.

    `cutoff_index`: of the first message of the state that the summary does not cover.
    `created_at_index`: how many messages the state had. `text`: the summary alone.
    `digest`: of the messages that it covers. `saved_index`: of the first message that
    the file does not have.
    """

    cutoff_index: int
    summary_message: HumanMessage
    file_path: str | None
    created_at_index: NotRequired[int]
    text: NotRequired[str]
    digest: NotRequired[str]
    saved_index: NotRequired[int]


class SummarizationState(AgentState):
    """The state of an agent, with keys hidden from callers and other agents."""

    _summarization_event: Annotated[
        NotRequired[SummarizationEvent | None], PrivateStateAttr
    ]
    _summarization_session_id: Annotated[NotRequired[str | None], PrivateStateAttr]


@dataclass
class HistorySession:
    """The state that a call finds of its thread, and `update`, its changes.

    `file` is the path of the history file; `version` that of the memory when the call
    began.
    """

    id: str
    file: str
    messages: Sequence[BaseMessage]
    event: SummarizationEvent | None
    version: int
    update: dict[str, Any] = field(default_factory=dict)

    @property
    def thread(self) -> str:
        return threads.thread_key(self.id)

    @property
    def digest(self) -> str:
        return self.event["digest"] if self.event else ""

    @property
    def path(self) -> str | None:
        return self.event["file_path"] if self.event else None

    @property
    def saved(self) -> int:
        """The number of messages of the state that are in the file unchanged."""
        if not self.event:
            return 0
        covered = self.event["cutoff_index"]
        if find_digest(self.messages, covered) != self.digest:
            return 0
        return self.event.get("saved_index", covered if self.path else 0)

    def record_summary(self, memory: ThreadMemory, files: FileCaller) -> None:
        """Append the messages of a new summary to the file, and make its event."""
        if memory.version != self.version:
            # Also after a failure, so that the next call knows of it.
            self.update[SESSION] = self.id
        if not memory.segments or memory.segments[-1].digest == self.digest:
            return
        head, body = threads.split_system(self.messages)
        active = threads.find_active(memory, body)
        if not active or active[-1].digest == self.digest:
            return
        newest = active[-1]
        end = len(head) + newest.block.last_seq
        start = min(self.saved, end)
        is_saved = save_messages(files, self.file, self.messages[start:end])
        self.event = SummarizationEvent(
            cutoff_index=end,
            summary_message=HumanMessage(newest.block.text),
            file_path=self.file if is_saved else None,
            created_at_index=len(self.messages),
            text=newest.block.text,
            digest=newest.digest,
            saved_index=end if is_saved else start,
        )
        self.update |= {SESSION: self.id, EVENT: self.event}

    def show_file(self, messages: Sequence[BaseMessage]) -> list[BaseMessage]:
        """Return the messages of a request; their summary names the file, if any."""
        shown = list(messages)
        # Summaries that LangChain has put into the thread have an id.
        found = (n for n, each in enumerate(shown) if is_summary(each) and not each.id)
        if (place := next(found, None)) is None:
            return shown
        text = shown[place].text.removeprefix(point_to(self.file))
        if self.path:
            text = point_to(self.path) + text
        shown[place] = shown[place].model_copy(update={"content": text})
        if EVENT in self.update:
            self.update[EVENT]["summary_message"] = shown[place]
        return shown


def point_to(path: str) -> str:
    return POINTER.format(path=path)


def add_pointer(view: AgentView, path: str, count_tokens: TokenCounter) -> AgentView:
    """Return the view with the path before its summary, counted."""
    summaries = view.context.get_section("summaries")
    if not summaries:
        return view
    text = point_to(path) + summaries[0].text
    pointed = summaries[0].model_copy(update={"content": text})
    context = view.context.with_section("summaries", [pointed])
    more = count_tokens([pointed]) - count_tokens(summaries)
    return replace(view, context=context, around=view.around + more)


def save_messages(
    files: FileCaller, path: str, messages: Sequence[BaseMessage]
) -> bool:
    """Append messages to a file of the backend.

    A failure costs nothing: the messages stay in the thread, and go to the file with
    those of the next summary.
    """
    media = MediaSaver(files, f"{path.rpartition('/')[0]}/media")
    said = [
        media.replace_media(message) for message in messages if not is_summary(message)
    ]
    text = get_buffer_string(said, format="xml")
    section = f"## Summarized at {datetime.now(UTC).isoformat()}\n\n{text}\n\n"
    try:
        (found,) = files.call_function("download_files", [path])
        old = "" if found.error or not found.content else found.content.decode()
    except Exception as error:  # noqa: BLE001 - the backend of the caller
        logger.debug("no history path=%s error=%s", path, type(error).__name__)
        old = ""
    try:
        if old:
            result = files.call_function("edit", path, old, old + section)
        else:
            result = files.call_function("write", path, section)
        wrong = "no result" if result is None else result.error
    except Exception as error:  # noqa: BLE001 - the backend of the caller
        wrong = type(error).__name__
    if wrong:
        logger.warning("history not saved path=%s error=%s", path, wrong)
        warnings.warn(
            "Offloading conversation history to backend failed during summarization. "
            "The summary names no file.",
            stacklevel=2,
        )
    elif media.failures:
        warnings.warn(
            f"{media.failures} media block(s) could not be offloaded. The history in "
            f"{path} says where; the thread has them.",
            stacklevel=2,
        )
    return not wrong


def read_event(
    value: Any, messages: Sequence[BaseMessage]
) -> SummarizationEvent | None:
    """Return an event of the state, with its text and digest, or None.

    None if it can't be read. The digest of an event of Deep Agents is that of the
    messages as they are now.
    """
    try:
        end, summary = value["cutoff_index"], value["summary_message"].text
        text = value.get("text") or summary.partition("<summary>")[2] or summary
    except (KeyError, TypeError, AttributeError):
        return None
    if type(end) is not int:
        return None
    text = text.strip().removesuffix("</summary>").strip()
    digest = value.get("digest") or find_digest(messages, end)
    if not digest:
        return None
    return {"file_path": None} | value | {"text": text, "digest": digest}


def to_memory(
    event: SummarizationEvent, messages: Sequence[BaseMessage], *, version: int
) -> ThreadMemory:
    """Return the memory that an event describes.

    Whether its messages have changed is checked where it is used.
    """
    head, _ = threads.split_system(messages)
    text, last = event["text"], event["cutoff_index"] - len(head)
    # Other summaries have numbers from 1 on.
    block = SummaryBlock(0, 0, 1, last, text, count_text(text))
    return ThreadMemory(version, (SummarySegment(block, event["digest"]),))


def find_digest(messages: Sequence[BaseMessage], end: int) -> str:
    """Return the digest of the state's messages before this index.

    It is "" if there are not so many.
    """
    head, body = threads.split_system(messages)
    (digest,) = threads.digest_prefixes(body, [end - len(head)])
    return digest


def is_summary(message: BaseMessage) -> bool:
    return SUMMARY_MARK.items() <= message.additional_kwargs.items()
