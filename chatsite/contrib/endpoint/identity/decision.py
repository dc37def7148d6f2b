"""The decision on a request: its kind, its conversation, and the chains to keep."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from .evidence import is_question
from .history import History

Kind = Literal["new", "single", "continued", "branch", "client-compacted", "retry"]


class Decision(NamedTuple):
    """The kind of a request, and where its messages belong.

    new, single: all its messages begin a conversation; a single one has only one.
    continued: messages[first_new:] follow the last message of `conversation`.
    branch: they follow its first `parent_position` messages, in a new conversation that
    shares those with its parent.
    client-compacted: like continued. The client's own messages[:summary] are in the
    transcript before the new ones.
    retry: nothing is new. The reply is another one to the last message.
    """

    kind: Kind
    # None for new and single.
    conversation: str | None = None
    # Number of messages of `conversation` before the new ones.
    parent_position: int = 0
    # Index of the first new message of the history.
    first_new: int = 0
    # Number of leading messages of the history that are the client's summary.
    summary: int = 0
    # (index in the history, position in the conversation) of messages that the client
    # has changed: stored as versions of the messages at those positions.
    rewritten: tuple[tuple[int, int], ...] = ()
    # Likewise, messages that the client has inserted before those positions.
    inserted: tuple[tuple[int, int], ...] = ()
    # Likewise, messages before `first_new` whose chains are kept with this request; for
    # a branch, the last message that it shares.
    aligned: tuple[tuple[int, int], ...] = ()
    # The conversation that the client's headers name, if the request continues none.
    linked: str | None = None
    # Codes of the reasons (WHY), for the page that explains the decision.
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
    """Yield the messages whose chain and digest are kept with the decision.

    Each is (index in the history, position in the conversation), old positions first. A
    retry adds none. The chain of the reply follows that of the last message:
    `history.py::read_reply`.
    """
    if decision.kind == "retry":
        return
    yield from decision.aligned
    new = range(decision.first_new, len(history.messages))
    added = (*range(decision.summary), *new)
    yield from zip(added, range(decision.parent_position, 10**9), strict=False)


def stays_single(history: History, decision: Decision, *, is_branch: bool) -> bool:
    """Return whether a single call is still one after this request.

    It is if nothing is new, or if a side call only gets results of its tools.
    """
    new = history.messages[decision.first_new :]
    return not new or (is_branch and not any(map(is_question, new)))
