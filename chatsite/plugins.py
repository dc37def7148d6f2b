"""Where apps meet the core: all that an app can add to it but HTML, see slots.py.

An app hands it over in the ready() of its AppConfig, by register_…() and mount(), and
connects to the signals. The core reads it when it needs it and imports no app, so one
that is not in INSTALLED_APPS leaves no trace.
"""

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

    from chatsite.live.fragments import Page
    from chatsite.live.socket_client import Client, Done
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
    """A table of an app: what the core does with its rows, and what people call them.
    An app hands each over once; what is not given does not happen."""

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
    # What a person has of it, for the download of the account.
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
    log_names: Mapping[str, Any] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    # Permissions besides that `manage.py create_groups` gives to a group of staff.
    permissions: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ListFilter:
    """What the list of conversations can be narrowed to, by a number in its address.
    `find_choices` gives those of a person as rows whose `choice` is a JSON object; they
    are read in one statement with what the list counts. `describe_choices` makes of
    these objects and of the chosen number what the templates of the list's parts
    need. `find_marks` says what rows of the list show of it, by key; it is asked only
    where there are choices, and is given them."""

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
    """Rows that staff should look at. `find` gives those that have a reason now, newest
    first, with their `conversation`, and annotated with `number` (of a reply, or the
    version of a summary) and `found_at`. `address` of the page about a row gets the key
    of its conversation, its number and its own key."""

    name: Any
    find: Callable[[], QuerySet[Any]]
    describe: Callable[[int], str]
    address: Callable[[int, int, int], str]


class AppEvent:
    """An event over the socket: a frozen dataclass. JSON clients get its fields, pages
    HTML of which each part is swapped by its id."""

    __slots__ = ()
    type: ClassVar[str]
    # Whether it says what a client reads as well when it is brought up to date.
    is_synced: ClassVar[bool] = False
    turn: int

    def draw_html(self, conversation: "Conversation") -> str:
        """For pages that show its turn. What a page has loaded besides its latest turns
        is not known; that is drawn again when it is loaded again."""
        raise NotImplementedError

    def draw_on(self, page: "Page", client: "Client") -> Iterator[str]:
        if self.turn in page.shown:
            yield self.draw_html(client.conversation())

    def draw_at_once(self, page: "Page") -> str | None:
        """The same, where the database need not be asked. None: it has to be."""
        return None

    def draw_answer(self, page: "Page") -> str:
        """For the page whose command is answered with it."""
        return ""

    def describe_status(self) -> str:
        """What a screen reader is told."""
        return ""


class AppCommand:
    """What a client of the socket wants: a frozen dataclass."""

    __slots__ = ()

    def apply_to(self, conversation: "Conversation") -> "Done":
        """In the database thread. Raises CommandError for what can't be done."""
        raise NotImplementedError


# Kept: the tables of apps.
app_data: list[AppData] = []


def register_data(*tables: AppData) -> None:
    """Hand tables of an app over to the core."""
    for data in tables:
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
    """All names of a kind that apps give."""
    return {
        word: name for data in app_data for word, name in getattr(data, kind).items()
    }


# What happened, told with keyword arguments. None is told of a word of a reply.
# A turn has ended, or waits for its person: `turn`, `state`. Not awaited by the turn.
turn_ended = Signal()
# What another app has news of: `kind`, `conversation`.
news_found = Signal()
# In their transactions: the books of a request to a model are closed (the key `call`;
# `work`, that of the turn or the trial that it was for), its person is charged (the key
# `user`; `used`), and a step of a turn that has run is over, such as a call of a tool:
# `conversation`, `turn`, the `seq` that asked, `name`, the code of its `error`,
# `started_at`, `finished_at`.
call_ended = Signal()
call_charged = Signal()
step_ended = Signal()
# A signed-in person opens a page: `request`. Has to cost nothing.
page_opened = Signal()

# Who can refuse, by the deed: that a message is sent into `conversation` (a sentence
# why, or ""), that `user_id` spends more (by a CommandError), and that anyone uses what
# has this `kind` and `name`, such as a model (whether it is off; it is asked before
# every use, so it may ask no database).
guards: dict[str, list[Callable[..., Any]]] = {"send": [], "spend": [], "use": []}


def register_guard(
    deed: Literal["send", "spend", "use"], check: Callable[..., Any]
) -> None:
    guards[deed].append(check)


# Fields of forms, by the form: the policy of a conversation, the preferences of a
# person, and what a conversation starts with.
form_fields: dict[str, dict[str, Callable[[], Any]]] = {
    "policy": {},
    "preferences": {},
    "start": {},
}


def register_field(
    form: Literal["policy", "preferences", "start"],
    name: str,
    make: Callable[[], "FormField"],
) -> None:
    form_fields[form][name] = make


# Of the socket: events and what reads each command, by their types; and what a client
# is told when it is brought up to date, given its turns that are open.
event_kinds: dict[str, type[AppEvent]] = {}
command_readers: dict[str, Callable[[dict[str, Any]], AppCommand]] = {}
standing_events: list[Callable[["Client", set[int]], Iterable[AppEvent]]] = []


def register_socket(
    *,
    events: Iterable[type[AppEvent]],
    commands: Mapping[str, Callable[[dict[str, Any]], AppCommand]] | None = None,
    find_standing: Callable[["Client", set[int]], Iterable[AppEvent]] | None = None,
) -> None:
    event_kinds.update({event.type: event for event in events})
    command_readers.update(commands or {})
    if find_standing:
        standing_events.append(find_standing)


# What is of several kinds, one of which an app brings, by the word that is kept for it.
sources: dict[type, dict[str, Any]] = {
    ListFilter: {},
    ReviewSource: {},
}


def register_source(kind: str, source: ListFilter | ReviewSource) -> None:
    sources[type(source)][kind] = source


def mount(
    *starts: str,
    slot: str = "SESSION",
    has_secret: bool = False,
    **limits: Any,
) -> None:
    """Say who may come in at addresses with one of these beginnings, by the `slot` and
    the limits of an Entrance. Those of a "LINK" open to anyone who knows the secret
    behind the beginning, which no log may have; `has_secret`: so do others, for one
    person."""
    entrances.entrances.append(
        entrances.Entrance(starts=starts, slot=entrances.Slot[slot], **limits)
    )
    if slot == "LINK":
        open_paths.paths += starts
    if has_secret:
        open_paths.secret_paths += starts


@dataclass(frozen=True, slots=True)
class BackgroundJob:
    """Work that any process may do: every sweep calls `sweep` in the event loop, if
    there are any `due` rows; a process that ends calls `release`, so that others go on
    at once.
    """

    sweep: Callable[[], Awaitable[object]]
    release: Callable[[], object] = lambda: None
    due: Callable[[], QuerySet[Any]] | None = None


jobs: list[BackgroundJob] = []


def register_job(sweep: Callable[[], Awaitable[object]], **others: Any) -> None:
    """Have a BackgroundJob done with these values."""
    jobs.append(BackgroundJob(sweep, **others))


# Checked by `manage.py doctor`, and on demand on the page *Settings* of the admin: what
# each says if all is well; any error says what is wrong, and what to do.
doctor_checks: dict[str, Callable[[], str]] = {}


def name_source(imported_from: str | None) -> str:
    """The site that an imported conversation comes from; "": it is not known."""
    kind, _, rest = (imported_from or "").partition(":")
    return collect_names("sources").get(kind, "").replace("%s", rest)


def is_switched_off(kind: str, name: str) -> bool:
    return any(is_off(kind=kind, name=name) for is_off in guards["use"])


def find_write_refusal(conversation: "Conversation") -> str:
    """Why nothing can be written into a conversation, in a sentence; "": it can."""
    found = (find(conversation=conversation) for find in guards["send"])
    return next(filter(None, found), "")
