"""The turns of a client's conversation.

Each user message begins a turn. The first reply without tool calls ends it.
"""

from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from chatsite.turns.copying.copies import NO_REPLY
from chatsite.turns.models import Turn
from memory.models import Conversation, Message
from memory.ranges import Ranges, range_without, to_ranges
from memory.sql import prepared_rows

State = Turn.State
Role = Message.Role


@prepared_rows()
def _find_last_turns(conversation_id: Any) -> QuerySet[Turn]:
    # Ordered by message: ordering by turn would sort all rows.
    rows = Turn.objects.filter(user_message__conversation_id=conversation_id)
    rows = rows.select_related("reply", "user_message")
    return rows.order_by("-user_message__seq")[:1]


@prepared_rows()
def _list_superseded(conversation_id: Any) -> QuerySet[Message, Any]:
    rows = Message.objects.filter(conversation_id=conversation_id)
    rows = rows.filter(superseded_at__isnull=False).order_by()
    return rows.values_list("seq", flat=True)


def _has_ended(turn: Turn) -> bool:
    return turn.reply is not None and not turn.reply.tool_calls


class ClientTurns:
    """The turns of one conversation, continued from the last one."""

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        found = _find_last_turns(conversation_id=conversation.pk)
        self.turn: Turn | None = found[0] if found else None
        self._new: list[Turn] = []
        self._first: Message | None = None

    def add_rows(self, rows: Sequence[Message]) -> None:
        """Make the turns of rows that were just stored, in their order."""
        changed: set[Turn] = set()
        for row in rows:
            self._first = self._first or row
            if row.role == Role.USER:
                self.turn = self._make_turn(row)
            elif self._is_reply(row):
                changed |= self._place_reply(row)
            elif row.role == Role.TOOL and self.turn and _has_ended(self.turn):
                # A client put its summary, with a reply, before these results.
                self.turn = self._make_turn(row)
        created, self._new = self._new, []
        Turn.objects.bulk_create(created)
        for turn in changed.difference(created):
            turn.save()

    def _is_reply(self, row: Message) -> bool:
        return row.role == Role.ASSISTANT and not (row.tool_calls or row.superseded_at)

    def _place_reply(self, row: Message) -> set[Turn]:
        turn = self.turn
        if turn is None or _has_ended(turn):
            # Two replies in a row: the second one answers nothing.
            turn = self._make_turn(row)
        turn.reply, turn.reply_seq, turn.text = row, row.seq, row.text
        turn.state, turn.error, turn.finished_at = State.DONE, "", timezone.now()
        return {turn} if turn.pk else set()

    def _make_turn(self, row: Message) -> Turn:
        turn = Turn(
            conversation=self.conversation,
            user_message=row,
            state=State.STOPPED,
            error=NO_REPLY,
            reply_seq=row.seq + 1,
            finished_at=timezone.now(),
        )
        self._new.append(turn)
        return turn

    def resume_reply(self) -> None:
        """Begin a turn with the last reply, which is resumed without a new message."""
        if self.turn and _has_ended(self.turn):
            self.turn = self._make_turn(self.turn.reply)
            self.add_rows([])

    def find_turn(self) -> Turn:
        """Return the turn that the next reply ends: that of the last user message."""
        if self.turn is None:
            self.turn = self._make_turn(self._first)
            self.add_rows([])
        return self.turn

    def find_sent(
        self, reply_seq: int, known: set[int] | None
    ) -> tuple[int | None, Ranges, Ranges]:
        """Return the numbers of the question, of earlier messages and of its steps.

        `known` holds the only messages that were sent; None: all of them.
        """
        newest = self.turn.user_message.seq if self.turn else None
        gone = set(_list_superseded(conversation_id=self.conversation.pk))
        if known is None:
            # The usual case: no set of all numbers is needed.
            if newest is None or newest in gone:
                return None, range_without(1, reply_seq - 1, gone), []
            steps = range_without(newest + 1, reply_seq - 1, gone)
            return newest, range_without(1, newest - 1, gone), steps
        known = known - gone
        if newest is None or newest not in known:
            return None, to_ranges(known), []
        before = to_ranges(seq for seq in known if seq < newest)
        return newest, before, to_ranges(seq for seq in known if seq > newest)
