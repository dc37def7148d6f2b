"""What a socket's commands do, and how its client sees the result: as JSON events or
as HTML fragments. Everything here is synchronous and runs in the database thread.
"""

import json
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Final

from django.conf import settings
from django.contrib import auth
from django.http import HttpRequest

from memory import transcript
from memory.models import Conversation

from . import events, fragments, turns
from .errors import CommandError
from .models import Turn


@dataclass(frozen=True, slots=True)
class Done:
    """A command's effect: events for its sender, events for everybody, work to do."""

    answers: tuple[events.Event, ...] = ()
    published: tuple[events.Event, ...] = ()
    has_work: bool = False
    stopping: int | None = None


SIGNED_OUT: Final = Done()


@dataclass(slots=True)
class Client:
    """Who is at the other end, and which conversation they opened."""

    user_id: int
    session_key: str | None
    uuid: str
    conversation_id: int

    @classmethod
    def open(cls, scope: dict[str, Any]) -> "Client":
        """Raises CommandError for a stranger ("signed_out") and for a conversation
        that is missing or foreign ("not_found")."""
        session_key = scope["session"].session_key
        user = _user_of(session_key)
        if not user.is_authenticated:
            raise CommandError("signed_out", "Sign in first.")
        uuid = scope["url_route"]["kwargs"]["uuid"]
        try:
            conversation = transcript.get_for(user, uuid)
        except Conversation.DoesNotExist:
            raise CommandError("not_found", "There is no such conversation.") from None
        return cls(user.pk, session_key, uuid, conversation.pk)

    @property
    def group(self) -> str:
        return events.group_of(self.conversation_id)

    def is_signed_in(self) -> bool:
        return self._user() is not None

    def _user(self) -> Any:
        """The user of the session as it is now, not as it was at the handshake."""
        user = _user_of(self.session_key)
        return user if user.pk == self.user_id else None

    def conversation(self) -> Conversation:
        return Conversation.objects.get(pk=self.conversation_id)

    def perform(self, command: events.Command) -> Done:
        """Raises CommandError for what can not be done."""
        user = self._user()
        if user is None:
            return SIGNED_OUT
        try:
            conversation = transcript.get_for(user, self.uuid)
        except Conversation.DoesNotExist:
            raise CommandError(
                "not_found", "This conversation does not exist any more."
            ) from None
        return _perform(conversation, command)


def _user_of(session_key: str | None) -> Any:
    """The session's user by the rules of the HTTP side; may be AnonymousUser."""
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    return auth.get_user(request)


def _perform(conversation: Conversation, command: events.Command) -> Done:
    match command:
        case events.Send(client_id, text):
            return _submitted(client_id, turns.submit, conversation, text=text)
        case events.Edit(seq, client_id, text):
            done = _submitted(client_id, turns.edit, conversation, seq=seq, text=text)
            changed = events.Memory(None, "changed")
            return replace(done, published=(*done.published, changed))
        case events.Stop(turn_id):
            turn = turns.stop(conversation, turn_id)
            running = turn.state == Turn.State.RUNNING
            if running:
                return Done(stopping=turn.pk)
            return Done(published=(events.End.of(turn),))
        case events.Retry(turn_id):
            turn = turns.retry(conversation, turn_id)
            return Done(published=(_state_of(turn),), has_work=True)
    return Done(has_work=True)


def _submitted(
    client_id: object, act: Any, conversation: Conversation, **values: Any
) -> Done:
    try:
        sent = act(conversation, client_id=client_id, **values)
    except (transcript.TextError, CommandError) as error:
        known = events.client_id_of({"client_id": client_id})
        raise CommandError(error.code, error.detail, client_id=known) from None
    ack = events.Ack(str(client_id), sent.message.seq, sent.turn.pk, sent.position)
    if not sent.created:
        return Done(answers=(ack,), has_work=True)
    published: list[events.Event] = [_state_of(sent.turn, sent.position)]
    if sent.title:
        published.append(events.Title(sent.title))
    return Done(answers=(ack,), published=tuple(published), has_work=True)


def _state_of(turn: Turn, position: int = 0) -> events.State:
    return events.State(turn.pk, turn.state, position)


class JsonView:
    """Events for clients that asked for the JSON subprotocol."""

    def __init__(self) -> None:
        self._live: set[int] = set()

    @property
    def is_live(self) -> bool:
        return bool(self._live)

    def sync(self, client: Client) -> list[str]:
        """The unfinished turns as they are saved, and the latest finished one."""
        found = list(turns.unfinished(client.conversation_id))
        found_live = {turn.pk for turn in found}
        ended = Turn.objects.select_related("reply").filter(
            conversation_id=client.conversation_id
        )
        missed = ended.filter(pk__in=self._live - found_live)
        latest = ended.exclude(state__in=Turn.UNFINISHED).order_by("-pk")[:1]
        self._live = found_live
        texts = [events.End.of(turn) for turn in {*missed, *latest}]
        for place, turn in enumerate(found):
            texts.append(_state_of(turn, place))
            if turn.state == Turn.State.RUNNING:
                texts.append(events.Frame(turn.pk, turn.attempt, 0, turn.text))
        return [_dump(event) for event in texts]

    def frame(self, frame: events.Frame) -> str | None:
        self._live.add(frame.turn)
        return _dump(frame)

    def event(self, client: Client, event: events.Event) -> list[str]:
        if isinstance(event, events.State):
            self._live.add(event.turn)
        elif isinstance(event, events.End):
            self._live.discard(event.turn)
        return [_dump(event)]

    def answer(self, client: Client, event: events.Event) -> list[str]:
        return [_dump(event)]

    def error(self, event: events.Error) -> list[str]:
        return [_dump(event)]


def _dump(event: events.Event) -> str:
    return json.dumps(events.to_json(event), ensure_ascii=False)


class HtmlView:
    """Fragments for the page."""

    def __init__(self) -> None:
        self._page = fragments.Page()

    @property
    def is_live(self) -> bool:
        return bool(self._page.live)

    def sync(self, client: Client) -> list[str]:
        return [self._page.sync(client.conversation())]

    def frame(self, frame: events.Frame) -> str | None:
        return self._page.frame(frame)

    def event(self, client: Client, event: events.Event) -> list[str]:
        conversation = client.conversation()
        status = fragments.status_of(event, conversation)
        match event:
            case events.State() | events.End():
                return [self._page.turn(conversation, event.turn, status)]
            case events.Title():
                return [fragments.title(conversation)]
        return [self._page.sync(conversation, status)]

    def answer(self, client: Client, event: events.Ack) -> list[str]:
        return [fragments.ack(event)]

    def error(self, event: events.Error) -> list[str]:
        return [fragments.error(event)]
