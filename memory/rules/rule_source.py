"""Where the rules and the facts of requests come from, which apps put in their
places, and how those of a request are read again.

The memory knows them as parts of a request, word for word and by reference; whose words
are rules or facts, and what a person decides about them, only an app knows.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from memory.engine.compose import RuleBlock

if TYPE_CHECKING:
    from memory.models import Conversation, Message

# What a request refers to a rule by: the number of its message and from where to where
# it is in the text; or the number, the hash of other words, and their date.
RuleRef = list[Any]
# And a fact by: the conversation and the number of the message that it is from, as in
# "1b4e28ba-2fa1-11d2-883f-0016d3cca427#12", and the hash of its day and words.
FactRef = list[str]


@dataclass(frozen=True, slots=True)
class StandingRule:
    """A rule or fact in force: what is sent, and the reference to it."""

    pk: int
    block: RuleBlock
    ref: RuleRef | FactRef
    is_confirmed: bool
    own_words: bool


class RuleSource:
    """Where the rules of conversations come from, or the facts that a person has stated
    in others. As it is here, there are none."""

    def detect_rules(self, typed: str) -> Any:
        """What a text of a person states as rules. No row is needed for it, so it can
        be done before any is locked."""
        return None

    def store_rules(self, message: "Message", detected: Any) -> None:
        """Keep the rules of a message of a person; call it inside the transaction that
        stores it. `detected`: what it states, if that was read before."""

    def add_own_rules(self, conversation: "Conversation", texts: Iterable[str]) -> None:
        """Give a new conversation the rules of its owner's own list, confirmed."""

    def list_standing(
        self, conversation: "Conversation", before: int | None = None
    ) -> list[StandingRule]:
        """The rules in force of messages that the model may see, the oldest first; of
        those before number `before`."""
        return []


# Those that are asked.
current = RuleSource()
facts = RuleSource()


def rebuild_rules(
    conversation: "Conversation",
    refs: Iterable[RuleRef],
    texts: Mapping[str, str],
) -> Iterator[RuleBlock]:
    """The rules of a request from its references; `texts` by their hashes. One whose
    text is gone is "", so the hash of the whole differs."""
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
    """The same, given what was `said` in the messages by their numbers, and when."""
    for seq, first, last in refs:
        if isinstance(first, str):
            yield RuleBlock(seq, last, texts.get(first, ""))
        else:
            text, at = said[seq]
            date = f"{at.astimezone(UTC):%Y-%m-%d}"
            yield RuleBlock(seq, date, text[first:last])


def name_fact(block: RuleBlock) -> str:
    """The text by whose hash a request refers to a fact. It begins with the day, so no
    rule or prompt has the same."""
    return f"{block.date} {block.text}"


def restore_facts(
    refs: Iterable[FactRef], texts: Mapping[str, str]
) -> Iterator[RuleBlock]:
    """The facts of a request from its references; `texts` by their hashes."""
    for _place, name in refs:
        date, _, words = texts.get(name, "").partition(" ")
        yield RuleBlock(0, date, words)
