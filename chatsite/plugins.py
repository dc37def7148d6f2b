"""The registries by which apps extend the core; HTML is added by slots.py.

An app registers in the ready() of its AppConfig, by register_…() and mount(), and
connects to the signals. The core reads the registries when it needs them and imports no
app, so one that is not in INSTALLED_APPS leaves no trace.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from django.db.models import Model, QuerySet
from django.dispatch import Signal
from pydantic import AfterValidator, AwareDatetime, BaseModel, Field
from pydantic_core import PydanticCustomError

from chatsite.ops import entrances, open_paths
from chatsite.protocol.errors import EXPLANATIONS
from memory.actions import message_deleted
from memory.models.change import APP_ACTIONS
from memory.transcript import LAST_SEQ

if TYPE_CHECKING:
    from django.contrib.auth.base_user import AbstractBaseUser
    from django.forms import Field as FormField

    from chatsite.live.fragments import LivePage
    from chatsite.live.socket_client import CommandEffect, SocketClient
    from memory.context import RequestContext
    from memory.integrity.audit import Finder
    from memory.models import Conversation

    Rows = QuerySet[Conversation]

# Outside of these a date is a mistake, and at the ends of what Python knows it can't be
# written in another zone.
OLDEST, NEWEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)


def _in_bounds(value: datetime) -> datetime:
    if not OLDEST <= value <= NEWEST:
        raise PydanticCustomError(
            "out_of_time", "expected a time between 1970 and 2200"
        )
    return value


# What rows of an export are made of: the number of a message, and a time.
Seq = Annotated[int, Field(ge=1, le=LAST_SEQ)]
Moment = Annotated[AwareDatetime, AfterValidator(_in_bounds)]
Time = Moment | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AppData:
    """A table of an app: what the core does with its rows, and how pages name them.

    An app registers each table once; what is not given does not happen.
    """

    # The list in export.json of which each row has this form, or the value of a
    # conversation of that form. `read` gives it, and `write` stores what an import has
    # read, and says what was left out: given, by name, `conversation`, its `messages`
    # by number, `rows`, and what makes a transaction of a `batch`.
    name: str = ""
    title: Any = ""
    row: type[BaseModel] | None = None
    form: Any = None
    read: Callable[["Conversation"], list[Any]] | None = None
    write: Callable[..., str | None] | None = None
    # The columns that are masked for staff who may not read.
    texts: tuple[str, ...] = ()
    # Blocks of Markdown by the number of the message that they stand below; each text
    # goes through the function that is given, which may mask it.
    describe: (
        Callable[["Conversation", Callable[[str], str]], dict[int, list[str]]] | None
    ) = None
    # Whether requests are made of it: then it is written before they are proved.
    is_of_requests: bool = False
    # Takes over to a `branch` what the `conversation` has, given the `messages` of the
    # branch by number; by name.
    copy: Callable[..., None] | None = None
    # Message `seq` is deleted, inside that transaction: given `conversation`, `seq`
    # and `edited` by name.
    forget: Callable[..., None] | None = None
    # What was sent last of a conversation that others send; None: it is the site's own.
    find_sent_last: Callable[["Conversation"], "RequestContext | None"] | None = None
    # Rows of a user, for the download of the account.
    list_own: Callable[["AbstractBaseUser"], list[Any]] | None = None
    # Rules of `manage.py audit`.
    audit_rules: Sequence["Finder"] = ()
    # What models were paid for: a table that has `created_at`, `user`, `model`,
    # `requests`, `tokens_in` and `tokens_out`.
    spending: type[Model] | None = None
    # Names, by the word that is kept: what owners and staff do, what the access log
    # says of a target or a list by its first word, why a turn failed, and the sites
    # that conversations come from, where "%s" is what follows the word.
    owner_actions: Mapping[str, Any] = field(default_factory=dict)
    staff_actions: Mapping[str, Any] = field(default_factory=dict)
    # Those of owners after which the model reads something else.
    changing_actions: Sequence[str] = ()
    log_names: Mapping[str, Any] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    # Permissions besides that `manage.py create_groups` gives to a group of staff.
    permissions: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ListFilter:
    """A filter of the list of conversations, chosen by a number in its address.

    `find_choices` gives a user's choices as rows whose `choice` is a JSON object; they
    are read in one statement with what the list counts. `describe_choices` makes the
    template values of the list's parts from these objects and the chosen number.
    `find_marks` returns what rows of the list show of the filter, by key; it is called
    only if there are choices, and gets them.
    """

    name: str
    narrow: Callable[["Rows", Any], "Rows"]
    find_choices: Callable[[Any], QuerySet[Any]]
    describe_choices: Callable[[list[dict[str, Any]], int | None], dict[str, Any]]
    find_marks: Callable[
        [Sequence["Conversation"], list[dict[str, Any]], int | None],
        Mapping[int, Sequence[str]],
    ]
    # Shows the choices above the list, if there are any; below it, if it folds some.
    template: str
    # What the list says when it finds nothing.
    nothing: Any
    # What the list shows unless it is narrowed to what is folded here, or is searched.
    unfold: Callable[["Rows"], "Rows"] | None = None


@dataclass(frozen=True, slots=True)
class ReviewSource:
    """Rows that staff should review.

    `find` returns those that have a reason now, newest first, with their
    `conversation`, annotated with `number` (of a reply, or the version of a summary)
    and `found_at`. `address` of the page about a row gets the key of its conversation,
    its number and its own key.
    """

    name: Any
    find: Callable[[], QuerySet[Any]]
    describe: Callable[[int], str]
    address: Callable[[int, int, int], str]


class AppEvent:
    """An event over the socket: a frozen dataclass.

    JSON clients get its fields, pages HTML of which each part is swapped by its id.
    """

    __slots__ = ()
    type: ClassVar[str]
    # Whether it says what a client reads as well when it is brought up to date.
    is_synced: ClassVar[bool] = False
    turn: int

    def draw_html(self, conversation: "Conversation") -> str:
        """Return the HTML for pages that show the turn.

        It is not known what a page has loaded besides its latest turns; those are drawn
        again when they are loaded again.
        """
        raise NotImplementedError

    def draw_on(self, page: "LivePage", client: "SocketClient") -> Iterator[str]:
        if self.turn in page.shown:
            yield self.draw_html(client.read_conversation())

    def draw_at_once(self, page: "LivePage") -> str | None:
        """Return the HTML if the database is not needed for it, else None."""
        return None

    def draw_answer(self, page: "LivePage") -> str:
        """Return the HTML for the page whose command is answered with this event."""
        return ""

    def describe_status(self) -> str:
        """Return the sentence for screen readers."""
        return ""


class AppCommand:
    """A command of a client of the socket: a frozen dataclass."""

    __slots__ = ()

    def apply_to(self, conversation: "Conversation") -> "CommandEffect":
        """Run the command in the database thread; raise CommandError to refuse."""
        raise NotImplementedError


# Kept: the tables of apps.
app_data: list[AppData] = []


def register_data(**values: Any) -> None:
    """Hand a table of an app over to the core, as an AppData with these values."""
    data = AppData(**values)
    app_data.append(data)
    APP_ACTIONS.update(data.owner_actions)
    EXPLANATIONS.update(data.errors)
    message_deleted.connect(_forget_message)


def _forget_message(signal: Signal, **sent: Any) -> None:
    for data in app_data:
        if data.forget:
            data.forget(**sent)


def collect_names(
    kind: Literal["staff_actions", "log_names", "sources"],
) -> dict[str, Any]:
    """Return all names of a kind that apps give."""
    return {
        word: name for data in app_data for word, name in getattr(data, kind).items()
    }


# Signals are sent with keyword arguments. None is sent for a word of a reply.
# A turn has ended, or waits for its user: `turn`, `state`. Not awaited by the turn.
turn_ended = Signal()
# What another app has news of: `kind`, `conversation`.
news_found = Signal()
# Sent inside their transactions: a request to a model has ended (the key `call`;
# `work`, the key of its turn or trial), a user is charged for it (the key `user`;
# `used`), and a step of a turn, such as a call of a tool, has ended: `conversation`,
# `turn`, the `seq` that asked, `name`, the code of its `error`, `started_at`,
# `finished_at`.
call_ended = Signal()
call_charged = Signal()
step_ended = Signal()
# Called on every page view of a signed-in user, with `request`; must be cheap.
page_opened = Signal()

# Guards that can refuse: a message into `conversation` (they return a sentence why, or
# ""), more spending by `user_id` (they raise CommandError), and any use of the model or
# tool with this `kind` and `name` (they return if it is off; they are called before
# every use, so they may not query the database).
guards: dict[str, list[Callable[..., Any]]] = {"send": [], "spend": [], "use": []}


def register_guard(
    deed: Literal["send", "spend", "use"], check: Callable[..., Any]
) -> None:
    guards[deed].append(check)


# Fields of forms, by the form: the policy of a conversation, the preferences of a
# user, the options that a conversation starts with, and what a link shows of replies.
form_fields: dict[str, dict[str, Callable[[], Any]]] = {
    "policy": {},
    "preferences": {},
    "start": {},
    "share": {},
}


def register_field(
    form: Literal["policy", "preferences", "start", "share"],
    name: str,
    make: Callable[[], "FormField"],
) -> None:
    form_fields[form][name] = make


@dataclass(frozen=True, slots=True, kw_only=True)
class AppSocket:
    """The additions of an app to the socket.

    They are its events, the readers of its commands by their types, and a function
    that returns the events a client gets when it syncs, given its open turns.
    """

    events: Sequence[type[AppEvent]]
    commands: Mapping[str, Callable[[dict[str, Any]], AppCommand]] = field(
        default_factory=dict
    )
    find_standing: Callable[["SocketClient", set[int]], Iterable[AppEvent]] = (
        lambda client, turns: ()
    )


sockets: list[AppSocket] = []


def register_socket(**added: Any) -> None:
    """Add an AppSocket with these values."""
    sockets.append(AppSocket(**added))


def find_event_kinds() -> dict[str, type[AppEvent]]:
    return {event.type: event for each in sockets for event in each.events}


def find_command_readers() -> dict[str, Callable[[dict[str, Any]], AppCommand]]:
    return {name: read for each in sockets for name, read in each.commands.items()}


@dataclass(frozen=True, slots=True)
class DoctorCheck:
    """A check of `manage.py doctor`, run on demand on the page *Settings* of the admin.

    `check` returns what it says if all is well; any error says what is wrong, and what
    to do.
    """

    check: Callable[[], str]


# What is of several kinds, one of which an app brings, by the word that is kept for it.
sources: dict[type, dict[str, Any]] = defaultdict(dict)


def register_source(kind: str, source: object, of: type | None = None) -> None:
    """Add a ListFilter, a ReviewSource, or what else is a source `of` a class."""
    sources[of or type(source)][kind] = source


def mount(
    *starts: str, slot: str = "SESSION", has_secret: bool = False, **limits: Any
) -> None:
    """Add an Entrance, with this `slot` and limits, for addresses that begin so.

    A "LINK" opens to everyone who knows the secret behind the beginning, which no log
    may hold; with `has_secret`, other addresses have such a secret for one user.
    """
    entrances.entrances.append(
        entrances.Entrance(starts=starts, slot=entrances.Slot[slot], **limits)
    )
    if slot == "LINK" or has_secret:
        open_paths.secret_paths.update(dict.fromkeys(starts, slot == "LINK"))


@dataclass(frozen=True, slots=True)
class BackgroundJob:
    """Work that any process may do.

    Every sweep calls `sweep` in the event loop if there are `due` rows. A process that
    ends calls `release`, so that others continue at once.
    """

    sweep: Callable[[], Awaitable[object]]
    release: Callable[[], object] = lambda: None
    due: Callable[[], QuerySet[Any]] | None = None


jobs: list[BackgroundJob] = []


def register_job(sweep: Callable[[], Awaitable[object]], **others: Any) -> None:
    """Have a BackgroundJob done with these values."""
    jobs.append(BackgroundJob(sweep, **others))


def name_source(imported_from: str | None) -> str:
    """Return the site that an imported conversation comes from; "" if it is unknown."""
    kind, _, rest = (imported_from or "").partition(":")
    return collect_names("sources").get(kind, "").replace("%s", rest)


def is_switched_off(kind: str, name: str) -> bool:
    return any(is_off(kind=kind, name=name) for is_off in guards["use"])


def find_write_refusal(conversation: "Conversation") -> str:
    """Return a sentence why a conversation cannot be written into; "" if it can."""
    found = (find(conversation=conversation) for find in guards["send"])
    return next(filter(None, found), "")
