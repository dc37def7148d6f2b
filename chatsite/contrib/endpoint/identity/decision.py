"""What a request is, among the conversations of a person, and what is kept of it."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from .evidence import is_question
from .history import History

Kind = Literal["new", "single", "continued", "branch", "client-compacted", "retry"]


class Decision(NamedTuple):
    """What a request is.

    new, single: all its messages begin a conversation; a single one has only one.
    continued: messages[first_new:] follow the last message of `conversation`.
    branch: they follow its first `parent_position` messages, as a conversation of their
    own that shares those with its parent.
    client-compacted: as continued. The client's own messages[:summary] stand in the
    transcript before what is new.
    retry: nothing is new. The reply is another one to the last message.
    """

    kind: Kind
    # None for new and single.
    conversation: str | None = None
    # How many messages of `conversation` come before what is new.
    parent_position: int = 0
    # The first message of the history that is new.
    first_new: int = 0
    # How many leading messages of the history are the client's summary.
    summary: int = 0
    # (index in the history, position in the conversation) of messages that the client
    # has changed: kept as versions of what is there.
    rewritten: tuple[tuple[int, int], ...] = ()
    # The same of messages that the client has put before those positions.
    inserted: tuple[tuple[int, int], ...] = ()
    # Of the messages before `first_new`, those whose chains are kept with this request;
    # of a branch, the last one that it shares.
    aligned: tuple[tuple[int, int], ...] = ()
    # A conversation that the client's headers name, for one that goes on none.
    linked: str | None = None
    # Codes of what led here (WHY), for the page that says why.
    why: tuple[str, ...] = ()


# README.md explains them.
WHY = (
    *("tip", "inside", "whole", "rewritten", "suffix", "head-cut", "hint-compacted"),
    *("unknown", "one-message", "equal-first", "no-served-reply", "unknown-replies"),
    *("two-fit", "prefill", "open", "retry-header", "retry-key", "side"),
    *(
        "previous",
        "compaction",
        "header-same",
        "header-other",
        "header-new",
        "header-shared",
    ),
)


def list_chains(history: History, decision: Decision) -> Iterator[tuple[int, int]]:
    """(index in the history, position in the conversation) of each message whose chain
    and digest are kept with the decision, old positions first. A retry adds none.

    The chain of the reply follows that of the last message: `history.py::read_reply`.
    """
    if decision.kind == "retry":
        return
    yield from decision.aligned
    new = range(decision.first_new, len(history.messages))
    added = (*range(decision.summary), *new)
    yield from zip(added, range(decision.parent_position, 10**9), strict=False)


def stays_single(history: History, decision: Decision, *, is_branch: bool) -> bool:
    """Return whether a single call is still one after this request: nothing is new, or
    to a side call only results of its tools."""
    new = history.messages[decision.first_new :]
    return not new or (is_branch and not any(map(is_question, new)))
