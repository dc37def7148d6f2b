"""The state machine of a turn. Each step is one short transaction; none of them waits
for a model. People ask for turns (asking.py), runners work them off (running.py).
"""

from .again import MESSAGE_DELETED, cancel_unanswerable, fence, regenerate, stop_all
from .asking import (
    Submitted,
    edit,
    get,
    open_from,
    position,
    retry,
    stop,
    submit,
    unfinished,
)
from .running import (
    Claim,
    Hold,
    Result,
    begin,
    checkpoint,
    claim,
    due,
    end_orphans,
    finish,
    give_up,
    release,
)

__all__ = [
    "MESSAGE_DELETED",
    "Claim",
    "Hold",
    "Result",
    "Submitted",
    "begin",
    "cancel_unanswerable",
    "checkpoint",
    "claim",
    "due",
    "edit",
    "end_orphans",
    "fence",
    "finish",
    "get",
    "give_up",
    "open_from",
    "position",
    "regenerate",
    "release",
    "retry",
    "stop",
    "stop_all",
    "submit",
    "unfinished",
]
