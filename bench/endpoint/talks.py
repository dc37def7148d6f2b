"""Conversations with a model, sent by clients that change what they send again."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from .wires import (
    Call,
    Request,
    Said,
    name_served,
    name_thread,
    rename_calls,
    write_body,
)

# Changes that a client makes to everything it sends. The last ones are those of agents,
# which call the same few tools; two of them reword their question in each request.
AGENTS = ("agent", "retrieval", "stamp")
# Replies named by their ids, by the APIs that have such names. With Anthropic's, the
# provider holds the conversation in a thread, which may have ended.
NAMED = ("references", "previous")
NAMES_OF = {"responses": NAMED, "messages": ("previous",)}
HABITS = (
    *("none", "clock", "rag", "details", "tool-ids", "split", "tail"),
    *NAMED,
    *AGENTS,
)
# Events of a conversation; each has MOST_ACTS of them, once each.
ACTS = (
    *("append", "edit", "regenerate", "branch", "retry", "cut", "compact"),
    *("aside", "summarise"),
)
MOST_ACTS = 7
# Beginnings of a conversation.
STARTS = ("own", "shared prefix", "examples")
# The conversation ids that a client sends.
HEADERS = ("no header", "own header", "shared header", "wrong header")
HEADER = {
    "chat": "x-openwebui-chat-id",
    "messages": "x-claude-code-session-id",
    "responses": "session-id",
}
SUMMARY = "Another language model has summarised what came before: "
# Replies to its summary that a client invents.
AGREED = ("", "Understood.", "Got it. Thank you for the context!", "OK.")
# A client's own questions after the history, with other instructions and tools.
ASIDES = (
    "List what is worth keeping for later conversations with this person.",
    "Suggest what the person may ask next, in a few words.",
    "Write a title of five words for this conversation.",
)
SUMMARISE = "Summarise this conversation, so that another model can go on with it."
TAIL = Said("user", "<system-reminder>Keep your answers short.</system-reminder>")
SHARED = (
    "Hello",
    "Please review the following change.",
    "继续上次的工作，先告诉我进度。",
    "You are testing. Say yes when you are ready to begin with the first case.",
)
EXAMPLES = (
    Said("user", "Classify: the parcel came late"),
    Said("assistant", "complaint"),
    Said("user", "Classify: thank you for the quick help"),
    Said("assistant", "praise"),
)
# The beginning of agents' questions, and their usual results.
LOOK = "Look into the repository: "
FOUND = {
    "list_files": "FILES README.md src tests",
    "git_status": "STATUS clean",
    "read_file": "README This package says what the weather is.",
    "run_tests": "TESTS 12 passed",
}
CALLED = {"read_file": '{"path": "README.md"}'}
NEXT = {
    LOOK: ("list_files", "list_files", "list_files", "git_status"),
    "FILES": ("read_file",),
    "STATUS": ("list_files",),
    "README": ("run_tests", ""),
    "TESTS": ("",),
}
VOCABULARY = (
    "a after again all and answer any because before black boat book both bridge "
    "build but call can carry change city clear close cold come corner count country "
    "cross day deep door down draw east edge end every eye fall far field find fire "
    "first follow food form four from garden give glass go gold green ground group "
    "hand hard have head hear help high hold home hour house how if in island just "
    "keep kind know land large last late leave left letter light line list little "
    "long look made many map mark market may mean might mile mind moon more morning "
    "most mountain move music name near need never new next night north note now "
    "number of off old on once one only open or order other our out over page paper "
    "part people place plan plant point port press quick rain read real red rest "
    "right river road rock room round run sail same sea second see seven she ship "
    "short show side sign silver simple six sky sleep slow small snow some song soon "
    "south spring stand star start stay step still stone stop story street sun table "
    "take tell ten than that the then there three through time to today tomorrow town "
    "train tree turn two under until up very wait walk wall warm watch water way week "
    "well west what when where which white who wide will wind window winter wish with "
    "wood word work world write year yellow you"
)
WORDS = VOCABULARY.split()


@dataclass(slots=True)
class Talk:
    """One conversation: its real messages, and its client's changes to them."""

    name: str
    user: int
    wire: str
    habits: tuple[str, ...]
    header: str
    random: Random
    acts: list[str]
    history: list[Said] = field(default_factory=list)
    # The client sends history[forgotten:], after its summary if it has one.
    forgotten: int = 0
    summary: tuple[Said, ...] = ()
    system: str = "You are a helpful assistant."
    tool: str = "weather"
    sent: int = 0
    # Number of messages before the first reply.
    start: int = 0

    def say(self) -> str:
        count = self.random.randint(3, 20)
        words = [self.random.choice(WORDS) for _ in range(count)]
        return f"{' '.join(words).capitalize()} {self.random.randint(0, 999)}?"

    def next_user(self) -> Said:
        if not {*AGENTS}.isdisjoint(self.habits):
            return Said("user", f"{LOOK}{self.say()}")
        chance = self.random.random()
        if chance < 0.1:
            return Said("user", self.say(), image=self.random.randbytes(200))
        if chance < 0.25:
            return Said("user", f"Look up the weather for: {self.say()}")
        return Said("user", self.say())

    def write_request(self, others: Sequence["Talk"], model: str) -> Request:
        self.sent += 1
        history = [*self.summary, *self.history[self.forgotten :]]
        # The tail comes last: after it, the last message is no question.
        for habit in sorted(self.habits, key="tail".__eq__):
            history = change_history(habit, history, self.random)
        system = self.system
        if "clock" in self.habits:
            system += f" It is day {self.sent}, {self.random.random()}."
        body = write_body(self.wire, system, history, model, self.tool)
        named = next((each for each in self.habits if each in NAMED), "")
        whole = None
        if named and self.wire == "responses":
            name_served(body, history, named)
        # A thread keeps its instructions and tools: other ones are sent without it.
        elif self.holds_thread:
            whole = name_thread(body, history)
        return Request(self.wire, body, self._write_headers(others), whole)

    @property
    def holds_thread(self) -> bool:
        return (
            self.wire == "messages"
            and "previous" in self.habits
            and self.system == "You are a helpful assistant."
        )

    def _write_headers(self, others: Sequence["Talk"]) -> dict[str, str]:
        name = {"own header": self.name, "shared header": "everything"}.get(self.header)
        if self.header == "wrong header":
            # Ids of conversations like this one only: correct ids of others are
            # measured separately.
            names = [each.name for each in others if each.header == self.header]
            is_wrong = names and self.random.random() < 0.3
            name = self.random.choice(names) if is_wrong else self.name
        return {HEADER[self.wire]: name} if name else {}

    def answer(self, reply: Said) -> None:
        self.history.append(reply)

    def step_aside(self, ask: str) -> "Talk":
        """Return the client's own question about the conversation, in its session."""
        about = {"system": "You look after conversations.", "tool": "save_note"}
        return replace(self, history=[*self.history, Said("user", ask)], **about)

    def fork(self, name: str) -> "Talk":
        """Return a copy in another tab, which is a new conversation for the client."""
        return replace(
            self,
            name=name,
            random=Random(self.random.random()),
            acts=["append", "append"],
            history=[*self.history],
        )


def change_history(habit: str, history: list[Said], random: Random) -> list[Said]:
    """Return the history as a client with this habit sends it."""
    if habit == "rag" and history[-1].role == "user" and history[-1].text:
        found = " ".join(random.choice(WORDS) for _ in range(40))
        text = f"### Context\n{found}\n\n### Question\n{history[-1].text}"
        return [*history[:-1], replace(history[-1], text=text)]
    if habit == "details":
        return [_add_details(said) for said in history]
    if habit == "tool-ids":
        return rename_calls(history, random)
    if habit == "split":
        return [replace(said, pieces=random.randint(0, 3)) for said in history]
    if habit == "tail":
        return [*history, TAIL]
    if habit in ("retrieval", "stamp"):
        return _reword_question(habit, history, random)
    return history


def _reword_question(habit: str, history: list[Said], random: Random) -> list[Said]:
    """Reword the last question, differently in each request."""
    at = max(n for n, said in enumerate(history) if said.role == "user")
    text = f"[{random.randint(0, 23):02}:{random.random():.6f}] {history[at].text}"
    if habit == "retrieval":
        found = " ".join(random.choice(WORDS) for _ in range(40))
        text = f"### Context\n{found}\n\n### Question\n{history[at].text}"
    return [*history[:at], replace(history[at], text=text), *history[at + 1 :]]


def _add_details(said: Said) -> Said:
    if said.role != "assistant" or not said.text:
        return said
    thought = f"> {len(said.text)} characters were thought about\n"
    head = f'<details type="reasoning" done="true">\n{thought}</details>\n'
    return replace(said, text=head + said.text, response="", items=())


@dataclass(frozen=True, slots=True)
class Step:
    """The next event of a conversation, and the right decision on it."""

    act: str
    # The decision of a perfect rule: continued, branch, retry or new.
    wanted: str


def begin_talk(talk: Talk, start: str) -> None:
    if start == "examples":
        talk.history += EXAMPLES
    if start == "shared prefix":
        talk.history.append(Said("user", talk.random.choice(SHARED)))
    else:
        talk.history.append(talk.next_user())
    talk.start = len(talk.history)


def take_step(talk: Talk, act: str) -> Step:
    """Change the history for the next request, which ends with a message to answer."""
    if act == "regenerate":
        talk.history.pop()
        return Step(act, "branch")
    if act == "edit":
        while talk.history[-1].role != "user" or talk.history[-1].results:
            talk.history.pop()
        talk.history[-1] = talk.next_user()
        return Step(act, "branch")
    if act == "retry":
        _go_on(talk)
        return Step(act, "continued")
    if act in ("cut", "compact"):
        said = f"{SUMMARY}{talk.say()}" if act == "compact" else ""
        forget_beginning(talk, said)
    _go_on(talk)
    return Step(act, "continued")


def _go_on(talk: Talk) -> None:
    calls = talk.history[-1].calls
    if calls:
        results = tuple((call.id, _find_result(talk, call)) for call in calls)
        talk.history.append(Said("tool", results=results))
    else:
        talk.history.append(talk.next_user())


def _find_result(talk: Talk, call: Call) -> str:
    """Return the result of a tool, mostly one that all agents get."""
    found = FOUND.get(call.name, "")
    if found and talk.random.random() < 0.8:
        return found
    return f"{found} {talk.say()} degrees, {call.name}".strip()


def forget_beginning(talk: Talk, summary: str = "") -> None:
    """Cut off the beginning up to a question, or replace it by a summary."""
    ends = [
        place
        for place in range(talk.forgotten + 1, len(talk.history) - 1)
        if talk.history[place].role == "user"
    ]
    if ends:
        talk.forgotten = talk.random.choice(ends)
        agreed = Said("assistant", talk.random.choice(AGREED))
        talk.summary = (Said("user", summary), agreed)[
            : bool(summary) * (1 + bool(agreed.text))
        ]
        # An id of a served response would include all messages before it.
        talk.history[:] = [replace(said, response="") for said in talk.history]


def make_reply(history: Sequence[Said], random: Random) -> Said:
    """Return a model's reply: a short or long text, or tool calls."""
    last = history[-1]
    if "weather for" in last.text:
        places = random.sample(WORDS, random.randint(1, 3))
        calls = tuple(
            Call(f"call_{random.getrandbits(64):016x}", "weather", _write_place(place))
            for place in places
        )
        return Said("assistant", calls=calls)
    if name := _choose_tool(last, random):
        call_id = f"call_{random.getrandbits(64):016x}"
        return Said("assistant", calls=(Call(call_id, name, CALLED.get(name, "{}")),))
    chance = random.random()
    if chance < 0.15:
        return Said("assistant", random.choice(("OK.", "Yes.", "Done.", "好的。")))
    count = random.randint(4, 12) if chance < 0.5 else random.randint(40, 120)
    words = " ".join(random.choice(WORDS) for _ in range(count))
    return Said("assistant", words.capitalize() + ".")


def _choose_tool(last: Said, random: Random) -> str:
    text = last.results[-1][1] if last.results else last.text
    found = (
        each for each in NEXT if text.startswith(each) or f"{LOOK}" == each in text
    )
    names = NEXT.get(next(found, ""), ("",))
    return random.choice(names)


def _write_place(place: str) -> str:
    return f'{{"place": "{place}"}}'


def make_talks(
    count: int, seed: int, user: int, wires: Sequence[str]
) -> Iterator[Talk]:
    """Yield conversations with MOST_ACTS acts each, and a continuation after each."""
    for number in range(count):
        random = Random(f"{seed} {number}")
        acts = [
            act for each in random.sample(ACTS, MOST_ACTS) for act in (each, "append")
        ]
        # Every habit with every header and API, and a third with two habits.
        habit = HABITS[number % len(HABITS)]
        header = HEADERS[number // len(HABITS) % len(HEADERS)]
        wire = wires[number // (len(HABITS) * len(HEADERS)) % len(wires)]
        if habit in NAMED and habit not in NAMES_OF.get(wire, ()):
            habit = random.choice(AGENTS)
        second = random.choice(HABITS) if number % 3 == 0 else habit
        habits = dict.fromkeys((habit, second))
        talk = Talk(
            f"talk-{seed}-{number}", user, wire, tuple(habits), header, random, acts
        )
        begin_talk(talk, STARTS[random.choice((0, 0, 1, 2))])
        yield talk
