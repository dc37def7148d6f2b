"""The words in the exports of other chats, whatever their form.

All values that are not technical are read in their order; kinds that no reader knows
are counted.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext, gettext_noop

from chatsite.llm.streaming import clean_text
from memory.engine.blank import is_blank

# Where an object has words, in the order that they are read in; then all others.
FIRST = ("title", "url", "text", "result", "summary")
# Strings that users have not read there: names of forms, ids, formats, sealed data.
TECHNICAL = frozenset(
    {
        *("content_type", "type", "id", "uuid", "asset_pointer", "status", "language"),
        *("response_format_name", "direction", "decoding_id", "format", "tether_id"),
        *("expiry_datetime", "ref_id", "source_analysis_msg_id", "computer_id"),
        *("file_id", "file_uuid", "tool_use_id", "mime_type", "file_type", "signature"),
        *("start_timestamp", "stop_timestamp", "created_at", "updated_at", "icon_name"),
        *("inserted_at", "encrypted_content", "data", "favicon", "icon_url"),
        *("integration_name", "ref_type"),
    }
)
BRANCH, HIDDEN = gettext_noop("texts of other branches"), gettext_noop("hidden")
MOST_KINDS, KIND_CHARS, OTHER = 50, 40, gettext_noop("other parts")


@dataclass(slots=True)
class Remainder:
    """The parts of conversations that were not understood, by their kinds."""

    kinds: Counter[str] = field(default_factory=Counter)

    def count_kind(self, kind: object, count: int = 1) -> None:
        """Count a kind; a file can have any number of them, with any names."""
        name = clean_text(kind)[:KIND_CHARS] if isinstance(kind, str) else ""
        is_known = name in self.kinds or len(self.kinds) < MOST_KINDS
        if count:
            self.kinds[name if name and is_known else OTHER] += count

    def list_kinds(self) -> list[tuple[str, int]]:
        """Each kind as people read it, the most frequent first."""
        return [(gettext(kind), count) for kind, count in self.kinds.most_common()]

    def count_words(self, value: Any, kind: object) -> None:
        self.count_kind(kind, sum(1 for _words in list_words(value)))


def has_words(value: object) -> bool:
    return isinstance(value, str) and not is_blank(value)


def list_words(value: Any) -> Iterator[str]:
    """Yield every string in it that is not blank.

    The whole file is no deeper than MAX_DEPTH.
    """
    if has_words(value):
        yield clean_text(value)
    elif isinstance(value, list):
        for part in value:
            yield from list_words(part)
    elif isinstance(value, dict):
        for key in order_keys(value):
            yield from list_words(value[key])


def order_keys(value: dict[str, Any]) -> list[str]:
    """Return the keys that are not technical, those of FIRST before the others."""
    first = [key for key in FIRST if key in value]
    return first + [key for key in value if key not in FIRST and key not in TECHNICAL]
