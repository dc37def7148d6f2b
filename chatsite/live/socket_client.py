"""The commands of a socket, and the views that show their results to its client.

A view sends JSON events or HTML fragments. All code here is synchronous; commands run
in the database thread, views in the thread for drawing.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import orjson
from django.db import IntegrityError, transaction
from django.db.models import DateTimeField, QuerySet, UUIDField
from django.utils import timezone
from django.utils.translation import gettext as _

from chatsite import plugins
from chatsite.accounts import sessions
from chatsite.plugins import AppCommand, AppEvent
from chatsite.protocol import events
from chatsite.protocol.errors import CommandError
from chatsite.turns import commands, lifecycle, limits, runner
from chatsite.turns.models import Turn
from memory import transcript
from memory.models import Conversation
from memory.sql import prepared_rows

from . import fragments, pieces, presence, progress, refusals


@dataclass(frozen=True, slots=True)
class CommandEffect:
    """A command's effect: events for its sender, events for everybody, work to do."""

    answers: tuple[events.Event, ...] = ()
    published: tuple[events.Event, ...] = ()
    # For all sockets of the user, in any conversation.
    personal: tuple[events.Event, ...] = ()
    has_work: bool = False
    claim: lifecycle.TurnClaim | None = None
    stopping: int | None = None


SIGNED_OUT: Final = CommandEffect()


@dataclass(slots=True)
class SocketClient:
    """The user at the other end, and the conversation that they opened."""

    user_id: int
    session_key: str | None
    uuid: str
    conversation_id: int
    # Where the conversation stood when the socket opened.
    last_seen: progress.ConversationProgress | None = field(default=None, repr=False)
    is_temporary: bool = False

    @classmethod
    def from_scope(cls, scope: dict[str, Any]) -> "SocketClient":
        """Return the client of a handshake.

        Raises CommandError for a stranger ("signed_out") and for a conversation that is
        missing or foreign ("not_found").
        """
        session_key = scope["session"].session_key
        user = sessions.user_of(session_key)
        if not user.is_authenticated:
            raise CommandError("signed_out", _("Log in first."))
        uuid = scope["url_route"]["kwargs"]["uuid"]
        try:
            conversation = transcript.get_for(user, uuid)
        except Conversation.DoesNotExist:
            raise CommandError(
                "not_found", _("There is no such conversation.")
            ) from None
        stands = progress.read_progress([conversation.pk]).get(conversation.pk)
        values = (user.pk, session_key, uuid, conversation.pk, stands)
        return cls(*values, is_temporary=conversation.is_temporary)

    @property
    def group(self) -> str:
        return events.group_of(self.conversation_id)

    @property
    def groups(self) -> tuple[str, str]:
        """The group of the conversation, and that of all of the user's sockets."""
        return self.group, events.group_of_user(self.user_id)

    @property
    def holder(self) -> sessions.Holder:
        return self.session_key, self.user_id

    def enter_presence(self, sockets: int) -> None:
        """Record the socket among the user's.

        Raises CommandError ("too_many_sockets", or "signed_out" when the account was
        deleted meanwhile).
        """
        try:
            presence.enter_presence(self.user_id, sockets)
        except IntegrityError:
            raise CommandError("signed_out", _("Log in first.")) from None

    def leave_presence(self, sockets: int) -> None:
        presence.leave_presence(self.user_id, sockets)

    def _own_conversation(self) -> Conversation | None:
        """Read the conversation with its owner and session, in one statement.

        Returns None if it is not found so: the caller must check the user again.
        """
        rows = _own_conversation(
            owner=self.user_id,
            uuid=self.uuid,
            session_key=self.session_key,
            now=timezone.now(),
        )
        is_own = rows and sessions.is_signed_in(rows[0].owner, rows[0].session)
        return rows[0] if is_own else None

    def read_conversation(self) -> Conversation:
        """Read the conversation. Raises Conversation.DoesNotExist when it is gone."""
        found = _select_conversation(pk=self.conversation_id)
        if not found:
            raise Conversation.DoesNotExist
        return found[0]

    def perform_command(self, command: events.Command) -> CommandEffect:
        """Perform a command and return its effect. Raises CommandError if it fails."""
        if conversation := self._own_conversation():
            return _perform_command(conversation, command)
        # The user of the session as it is now, not as it was at the handshake.
        user = sessions.user_of(self.session_key)
        if user.pk != self.user_id:
            return SIGNED_OUT
        try:
            conversation = transcript.get_for(user, self.uuid)
        except Conversation.DoesNotExist:
            raise CommandError(
                "not_found", _("This conversation no longer exists.")
            ) from None
        return _perform_command(conversation, command)


@prepared_rows()
def _select_conversation(pk: Any) -> QuerySet[Conversation]:
    return Conversation.objects.filter(pk=pk).order_by()


@prepared_rows(uuid=UUIDField(), now=DateTimeField())
def _own_conversation(
    owner: Any, uuid: Any, session_key: Any, now: Any
) -> QuerySet[Conversation]:
    rows = Conversation.objects.filter(owner=owner, uuid=uuid, deleted_at=None)
    rows = rows.annotate(session=sessions.select_session_data(session_key, now))
    return rows.select_related("owner").order_by()


def _perform_command(
    conversation: Conversation, command: events.Command
) -> CommandEffect:
    match command:
        case events.Send(client_id, text, attachments):
            send = partial(commands.send_message, run=runner.may_claim())
            return _submit_message(
                client_id, send, conversation, text=text, attachments=attachments
            )
        case events.Edit(seq, client_id, text):
            done = _submit_message(
                client_id, _edit_message, conversation, seq=seq, text=text
            )
            changed = events.Memory(None, "changed")
            return replace(done, published=(*done.published, changed))
        case events.Stop(turn_id):
            turn = commands.stop_turn(conversation, turn_id)
            running = turn.state == Turn.State.RUNNING
            if running:
                return CommandEffect(stopping=turn.pk)
            return CommandEffect(published=tuple(events.make_end_events(turn)))
        case events.Retry(turn_id):
            turn = _retry_turn(commands.retry_turn, conversation, turn_id)
            return CommandEffect(published=_announce_turn(turn), has_work=True)
        case events.Regenerate(turn_id):
            turn = _retry_turn(commands.regenerate_reply, conversation, turn_id)
            return CommandEffect(published=_announce_turn(turn), has_work=True)
        case AppCommand():
            return command.apply_to(conversation)
    return CommandEffect(has_work=True)


def _submit_message(
    client_id: object, act: Any, conversation: Conversation, **values: Any
) -> CommandEffect:
    try:
        sent = _admit_message(conversation, client_id, act, values)
    except (transcript.TextError, CommandError) as error:
        known = events.client_id_of({"client_id": client_id})
        raise CommandError(
            error.code,
            error.detail,
            client_id=known,
            retry_after=getattr(error, "retry_after", None),
            seq=getattr(error, "seq", None),
        ) from None
    ack = events.Ack(str(client_id), sent.message.seq, sent.turn.pk, sent.position)
    if not sent.created:
        return CommandEffect(answers=(ack,), has_work=True)
    published = [*_announce_turn(sent.turn, sent.position)]
    if sent.title:
        published.append(events.Title(sent.title))
    return CommandEffect((ack,), tuple(published), has_work=True, claim=sent.claim)


def _admit_message(
    conversation: Conversation, client_id: object, act: Any, values: dict[str, Any]
) -> commands.Submission:
    """Submit a message; a repeated one is recognised, and only new turns count.

    While an earlier refusal holds, a new message is refused with it.
    """
    owner = conversation.owner_id
    earlier = refusals.find_refusal(owner)
    if earlier and not commands.is_known(conversation, client_id):
        raise earlier
    try:
        return act(conversation, client_id=client_id, **values)
    except CommandError as error:
        refusals.note_refusal(owner, error)
        raise


def _edit_message(
    conversation: Conversation, *, client_id: object, text: object, seq: int
) -> commands.Submission:
    rules = commands.detect_unless_known(conversation, text=text, client_id=client_id)
    values = {"client_id": client_id, "text": text, "seq": seq, "rules": rules}
    with transaction.atomic():
        sent = commands.edit_message(conversation, **values)
        if sent.created:
            limits.admit_turn(conversation.owner_id)
    return sent


@transaction.atomic
def _retry_turn(act: Any, conversation: Conversation, turn_id: int) -> Turn:
    turn = act(conversation, turn_id)
    limits.admit_turn(conversation.owner_id)
    return turn


def _announce_turn(turn: Turn, position: int = 0) -> tuple[events.Event, ...]:
    """Return the events of the turns that this turn has ended, and its state."""
    return (*turn.also_published, _state_of(turn, position))


def _state_of(turn: Turn, position: int = 0) -> events.State:
    return events.State(turn.pk, turn.state, position)


class JsonView:
    """Events for clients that asked for the JSON subprotocol."""

    def __init__(self) -> None:
        self._live: set[int] = set()
        self.latest = 0

    @property
    def is_live(self) -> bool:
        return bool(self._live)

    def _note(self, turn_id: int, *, is_live: bool = True) -> None:
        self.latest = max(self.latest, turn_id)
        if is_live:
            self._live.add(turn_id)
        else:
            self._live.discard(turn_id)

    def sync(self, client: SocketClient) -> Iterator[list[str]]:
        """Yield the unfinished turns as they are saved, and the latest finished one."""
        found = list(lifecycle.unfinished(client.conversation_id))
        found_live = {turn.pk for turn in found}
        ended = Turn.objects.select_related("reply").filter(
            conversation_id=client.conversation_id
        )
        missed = ended.filter(pk__in=self._live - found_live)
        latest = ended.exclude(state__in=Turn.UNFINISHED).order_by("-pk")[:1]
        self._live = found_live
        self.latest = max([self.latest, *found_live, *(turn.pk for turn in latest)])
        for turn in {*missed, *latest}:
            yield [_dump_event(events.TurnEnd.from_turn(turn))]
        for place, turn in enumerate(found):
            yield [_dump_event(_state_of(turn, place))]
            if turn.state == Turn.State.RUNNING:
                frame = events.Frame(turn.pk, turn.text_attempt, 0, turn.text)
                yield _in_pieces(frame)
        for app in plugins.sockets:
            found_events = app.find_standing(client, found_live)
            yield [_dump_event(each) for each in found_events]

    def at_once(self, event: events.Event) -> list[str]:
        if isinstance(event, events.Frame):
            self._note(event.turn)
            return _in_pieces(event)
        if isinstance(event, events.State | events.TurnEnd):
            self._note(event.turn, is_live=isinstance(event, events.State))
        return [_dump_event(event)]

    def draw_event(
        self, client: SocketClient, event: events.Event
    ) -> Iterator[list[str]]:
        yield self.at_once(event)

    def draw_answer(self, event: events.Ack | events.Error | AppEvent) -> list[str]:
        return [_dump_event(event)]


def _dump_event(event: events.Event) -> str:
    return orjson.dumps(events.to_json(event)).decode()


def _in_pieces(frame: events.Frame) -> list[str]:
    return [_dump_event(piece) for piece in frame.split_tail(pieces.PIECE_CHARS)]


class HtmlView:
    """Fragments for the page."""

    def __init__(self, query: bytes = b"") -> None:
        self._page = fragments.LivePage(query.decode("latin-1"))

    @property
    def is_live(self) -> bool:
        return bool(self._page.live)

    @property
    def latest(self) -> int:
        return max(self._page.shown, default=0)

    def sync(self, client: SocketClient) -> Iterator[list[str]]:
        yield from pieces.cut_fragment(self._page.sync(client.read_conversation()))

    def at_once(self, event: events.Event) -> list[str] | None:
        """Return the fragments of an event that needs no query, else None.

        Such are the next words of a reply, and the events of some apps.
        """
        if isinstance(event, AppEvent):
            text = event.draw_at_once(self._page)
        elif isinstance(event, events.Frame):
            text = self._page.draw_frame(event)
        else:
            return None
        if text is None:
            return None
        return [one for some in pieces.cut_fragment([text]) for one in some if one]

    def draw_event(
        self, client: SocketClient, event: events.Event
    ) -> Iterator[list[str]]:
        conversation_id = client.conversation_id
        status = fragments.status_of(event, conversation_id)
        match event:
            case events.State() | events.TurnEnd():
                parts = [self._page.draw_turn(conversation_id, event.turn, status)]
            case events.Title():
                parts = [fragments.render_title(client.read_conversation())]
            case events.JobState():
                parts = [fragments.render_activities(client.read_conversation())]
            case AppEvent():
                parts = event.draw_on(self._page, client)
            case _:
                parts = self._page.sync(client.read_conversation(), status)
        yield from pieces.cut_fragment(parts)

    def draw_answer(self, event: events.Ack | events.Error | AppEvent) -> list[str]:
        if isinstance(event, AppEvent):
            return [*filter(None, [event.draw_answer(self._page)])]
        is_error = isinstance(event, events.Error)
        return [
            fragments.render_error(event) if is_error else fragments.render_ack(event)
        ]


View = JsonView | HtmlView
