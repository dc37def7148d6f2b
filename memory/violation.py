"""What an audit says about one broken promise."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken promise: `code` names the rule and the case, such as "R6.gap"."""

    code: str
    conversation_id: int
    detail: str

    def __str__(self) -> str:
        return f"{self.code} conversation={self.conversation_id} {self.detail}"


Finder = Callable[[], Iterator[Violation]]
