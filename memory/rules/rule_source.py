"""The sources of the rules and facts of requests, which apps replace.

The memory knows rules and facts as parts of a request, word for word and by reference.
Only an app knows whose words they are and what a user decides about them.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from memory.engine.compose import RuleBlock

if TYPE_CHECKING:
    from memory.models import Conversation, Message

# A reference to a rule: the number of its message, and start and end in the text; or
# the number, the hash of other words, and their date.
RuleRef = list[Any]
# A reference to a fact: the conversation and number of its message, as in
# "1b4e28ba-2fa1-11d2-883f-0016d3cca427#12", and the hash of its day and words.
FactRef = list[str]


@dataclass(frozen=True, slots=True)
class StandingRule:
    """A rule or fact in force: its text to send, and the reference to it."""

    pk: int
    block: RuleBlock
    ref: RuleRef | FactRef
    is_confirmed: bool
    own_words: bool


class RuleSource:
    """A source of rules, or of facts that a user has stated elsewhere.

    This one has none.
    """

    def detect_rules(self, typed: str) -> Any:
        """Return the rules that a user's text states.

        It needs no row, so it can be called before any is locked.
        """
        return None

    def store_rules(self, message: "Message", detected: Any) -> None:
        """Store the rules of a user's message.

        Call it inside the transaction that stores the message. `detected`: its rules,
        if they are known.
        """

    def add_own_rules(self, conversation: "Conversation", texts: Iterable[str]) -> None:
        """Give a new conversation rules of its owner's own list, confirmed."""

    def list_standing(
        self, conversation: "Conversation", before: int | None = None
    ) -> list[StandingRule]:
        """Return the rules in force of visible messages, the oldest first.

        `before`: only rules of messages before this number.
        """
        return []


# The sources in use; apps add theirs.
sources: dict[str, RuleSource] = {}


def find_source(kind: Literal["rules", "facts"]) -> RuleSource:
    return sources.get(kind) or RuleSource()


def rebuild_rules(
    conversation: "Conversation", refs: Iterable[RuleRef], texts: Mapping[str, str]
) -> Iterator[RuleBlock]:
    """Return the rules of a request from its references; `texts` by their hashes.

    A rule whose text is gone is "", so the hash of the whole differs.
    """
    refs = list(refs)
    rows = conversation.messages.filter(seq__in={seq for seq, *_ in refs})
    said = {
        seq: (text, at)
        for seq, text, at in rows.values_list("seq", "text", "created_at")
    }
    return restore_rules(refs, said, texts)


def restore_rules(
    refs: Iterable[RuleRef],
    said: Mapping[int, tuple[str, datetime]],
    texts: Mapping[str, str],
) -> Iterator[RuleBlock]:
    """Yield the rules, given what messages `said` by their numbers, and when."""
    for seq, first, last in refs:
        if isinstance(first, str):
            yield RuleBlock(seq, last, texts.get(first, ""))
        else:
            text, at = said[seq]
            date = f"{at.astimezone(UTC):%Y-%m-%d}"
            yield RuleBlock(seq, date, text[first:last])


def name_fact(block: RuleBlock) -> str:
    """Return the text whose hash refers to a fact.

    It begins with the day, so no rule or prompt has the same.
    """
    return f"{block.date} {block.text}"


def restore_facts(
    refs: Iterable[FactRef], texts: Mapping[str, str]
) -> Iterator[RuleBlock]:
    """Yield the facts of a request from its references; `texts` by their hashes."""
    for _place, name in refs:
        date, _, words = texts.get(name, "").partition(" ")
        yield RuleBlock(0, date, words)
