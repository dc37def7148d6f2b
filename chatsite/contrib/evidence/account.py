"""The account of a request: the place of every message."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from memory.models import Message, Summary
from memory.ranges import is_within
from memory.view.variation import list_sent


@dataclass(frozen=True, slots=True)
class MessagePlace:
    """The place of a message.

    The names are "sent", "summary", "owner" and "rule" (left out by them), "held" (the
    provider has it from earlier requests), "erased", and "reply" for the reply itself.
    """

    name: str
    details: dict[str, Any] = field(default_factory=dict)


class MessageAccount:
    """The places of messages in the request with these references.

    `at`: when it was sent. `reply`: the number of its reply. `held`: the messages that
    its provider holds.
    """

    def __init__(
        self,
        refs: Mapping[str, Any],
        summaries: Iterable[Summary],
        at: datetime,
        reply: int | None,
        held: Collection[int] = (),
    ) -> None:
        self.at, self.reply, self.held = at, reply, held
        self.sent = list_sent(refs)
        self.unfitting = refs.get("left_out", ())
        # The request can differ from the conversation by one hidden message.
        self.hidden_once = refs.get("trial", {}).get("left_out")
        used = {*refs["summaries"]}
        self.summaries = [row for row in summaries if row.version in used]

    def find_place(self, row: Message) -> MessagePlace:
        if row.seq == self.reply:
            return MessagePlace("reply")
        if row.deleted_at:
            return MessagePlace("erased")
        if row.seq in self.sent:
            return MessagePlace("sent")
        if row.seq in self.held:
            return MessagePlace("held")
        times = [at for at in (row.excluded_at, row.superseded_at) if at]
        removed = min(times, default=None)
        if summary := self._find_summary(row, removed):
            return MessagePlace("summary", {"version": summary.version})
        if row.seq == self.hidden_once:
            return MessagePlace("owner", {"why": "hidden for this reply"})
        if removed and removed <= self.at:
            why = "hidden" if removed == row.excluded_at else "replaced"
            return MessagePlace("owner", {"why": why})
        return MessagePlace("rule", {"why": self._find_rule(row)})

    def _find_summary(self, row: Message, removed: datetime | None) -> Summary | None:
        for each in self.summaries:
            is_covered = each.first_seq <= row.seq <= each.last_seq
            was_there = not removed or removed > each.written_at
            if is_covered and was_there and not each.is_trimmed:
                return each
        return None

    def _find_rule(self, row: Message) -> str:
        if is_within(row.seq, self.unfitting):
            return "it did not fit"
        if any(each.first_seq <= row.seq <= each.last_seq for each in self.summaries):
            return "it had left the window"
        return "it was not in the view of this request"
