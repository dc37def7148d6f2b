"""The forms in which fourteen clients send a conversation, and their player.

Each plays six turns with two rounds of tools, and requests beside them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.fakes import wires
from tests.fakes.upstream import Exchange, Upstream

from ..identity import Target
from ..in_memory import Answer
from ..wires import Call, Request, Said, write_body

TURNS, ROUNDS = 6, 2
LOOK = "look"
REPLY = (
    "What was found for turn {} says that lamp {} is to be mended before the others."
)
# The reply to a client without tools: lines to change.
EDIT = "\n```python\nlamps[{}].mend()\n```\n" + "It was broken by its own weight. " * 6
TASK = "You find out which lamps of a house are broken. Look before you answer. " * 6
BESIDE = "Write short notes on what is worth knowing of this person, or a title. " * 6
NOTE = "<system-reminder>It is minute {}.</system-reminder>\n"
FOUND = "### Context\nPage {} says that lamps break.\n\n### Question\n"
SUMMARY = Said("user", "Summary of what came before: the first lamps were looked at.")

# A client's change of its history; `number` counts its requests.
Change = Callable[[list[Said], int], list[Said]]


def find_question(history: Sequence[Said]) -> int:
    return max(n for n, said in enumerate(history) if said.role == "user")


def put_before_question(text: str) -> Change:
    """Put a text before the last question; the next request moves it."""

    def change(history: list[Said], number: int) -> list[Said]:
        at = find_question(history)
        asked = replace(history[at], text=text.format(number) + history[at].text)
        return [*history[:at], asked, *history[at + 1 :]]

    return change


def begin_with(*said: Said) -> Change:
    return lambda history, number: [*said, *history]


def put_files_before_question(history: list[Said], number: int) -> list[Said]:
    at = find_question(history)
    files = Said("user", f"Here are the files, version {number // ROUNDS}: lamps.py")
    return [*history[:at], files, Said("assistant", "Ok."), *history[at:]]


def cut_text(history: list[Said], number: int) -> list[Said]:
    return [replace(said, pieces=2) if said.text else said for said in history]


def keep_last_turns(*summary: Said) -> Change:
    """Keep only the last three turns, from the fifth turn on."""

    def change(history: list[Said], number: int) -> list[Said]:
        asked = [n for n, said in enumerate(history) if said.role == "user"]
        return [*summary, *history[asked[-3] :]] if len(asked) > 4 else history

    return change


@dataclass(frozen=True, slots=True)
class Shape:
    name: str
    wire: str
    changes: tuple[Change, ...] = ()
    # The header, or field of the body, with the client's conversation id.
    id_name: str = ""
    is_clocked: bool = False
    # The request beside each turn: "history" sends all messages, "text" one message.
    beside: str = ""
    more: dict[str, Any] = field(default_factory=dict)
    has_tools: bool = True


ENVIRONMENT = Said("user", "<environment_context>\n  /home/me\n</environment_context>")
SHAPES = (
    Shape("openai", "chat"),
    Shape("ai-sdk", "responses", (cut_text,), more={"store": False}),
    Shape(
        "qwen-code",
        "chat",
        (begin_with(ENVIRONMENT, Said("assistant", "Got it. Thanks!")),),
        beside="history",
    ),
    Shape(
        "claude-code",
        "messages",
        (put_before_question(NOTE), cut_text),
        id_name="x-claude-code-session-id",
        is_clocked=True,
        beside="text",
    ),
    Shape("codex", "responses", (begin_with(ENVIRONMENT),), id_name="prompt_cache_key"),
    Shape(
        "cline",
        "chat",
        (keep_last_turns(SUMMARY, Said("assistant", "Understood.")), cut_text),
    ),
    Shape(
        "opencode",
        "chat",
        (put_before_question(NOTE),),
        id_name="x-opencode-session",
        beside="text",
    ),
    Shape(
        "goose",
        "chat",
        (put_before_question(NOTE),),
        "agent-session-id",
        is_clocked=True,
    ),
    Shape("continue", "chat", (cut_text,)),
    Shape("aider", "chat", (put_files_before_question,), has_tools=False),
    Shape("librechat", "chat", id_name="x-librechat-conversation-id", beside="text"),
    Shape(
        "open-webui",
        "chat",
        (put_before_question(FOUND),),
        beside="text",
    ),
    Shape("langchain", "messages", (cut_text,), is_clocked=True),
    Shape("llamaindex", "chat", (keep_last_turns(),)),
)


class Player:
    """One client in one conversation.

    `answers` and `beside` are the decisions on its requests, and on those beside them.
    """

    def __init__(self, shape: Shape, target: Target, person: int = 0) -> None:
        self.shape, self.target, self.person = shape, target, person
        self.history: list[Said] = []
        self.answers: list[Answer] = []
        self.beside: list[Answer] = []

    def play(self) -> None:
        for turn in range(TURNS):
            text = f"I am {self.shape.name}. Which lamp of house {turn} is broken?"
            self.history.append(Said("user", text))
            self.take_turn(turn)
            if self.shape.beside:
                self.ask_beside()

    def take_turn(self, turn: int) -> None:
        """Send requests until the model calls no more tools."""
        for done in range(ROUNDS + 1):
            answer = self.ask(make_reply(self.shape.has_tools, turn, done))
            self.answers.append(answer)
            self.history.append(answer.reply)
            if not answer.reply.calls:
                return
            found = f"Lamp {turn}-{done} is broken."
            results = tuple((call.id, found) for call in answer.reply.calls)
            self.history.append(Said("tool", results=results))

    def ask(self, reply: Said) -> Answer:
        history, number = self.history, len(self.answers)
        for change in self.shape.changes:
            history = change(history, number)
        about = f"It is minute {number}. {TASK}" if self.shape.is_clocked else TASK
        tools = [LOOK] if self.shape.has_tools else []
        return self.send(about, history, tools, reply)

    def ask_beside(self) -> None:
        asked = Said("user", "Which notes are there of this?")
        history = [*self.history, asked]
        if self.shape.beside == "text":
            texts = "\n".join(f"{said.role}: {said.text}" for said in history)
            history = [Said("user", texts)]
        for change in self.shape.changes[:1]:
            history = change(history, len(self.answers))
        reply = Said("assistant", f"Notes of {len(self.answers)} requests.")
        self.beside.append(self.send(BESIDE, history, ["write_note"], reply))

    def send(
        self, about: str, history: list[Said], tools: list[str], reply: Said
    ) -> Answer:
        shape = self.shape
        body = write_body(shape.wire, about, history, "gpt-5.4-mini") | shape.more
        body["tools"] = [write_tool(shape.wire, name) for name in tools]
        headers = {}
        if shape.id_name == "prompt_cache_key":
            body[shape.id_name] = f"talk-of-{shape.name}"
        elif shape.id_name:
            headers = {shape.id_name: f"talk-of-{shape.name}"}
        return self.target.send(self.person, Request(shape.wire, body, headers), reply)


def write_tool(wire: str, name: str) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {"place": {"type": "string"}}}
    if wire == "messages":
        return {"name": name, "input_schema": parameters}
    function = {"name": name, "parameters": parameters}
    if wire == "responses":
        return {"type": "function", **function}
    return {"type": "function", "function": function}


def make_reply(has_tools: bool, number: int, done: int) -> Said:
    """Return the model's reply after `done` rounds of a turn."""
    if has_tools and done < ROUNDS:
        call = Call(f"call_{number}_{done}", LOOK, f'{{"place": "house {number}"}}')
        return Said("assistant", calls=(call,))
    text = REPLY.format(number, number)
    return Said("assistant", text if has_tools else text + EDIT.format(number))


class ShapeProvider(Upstream):
    """A model that calls a tool twice per question, counting the turn's results."""

    is_strict = False

    def next_mode(self, body: dict[str, Any]) -> Any:
        return self.answer

    def answer(self, x: Exchange) -> None:
        wire = wires.find_wire(x.handler.path)
        said = wires.list_said(wire, x.body)
        last = max(n for n, (role, _) in enumerate(said) if role == "user")
        done = sum(role == "tool" for role, _ in said[last + 1 :])
        has_tools = bool(x.body.get("tools"))
        if "write_note" in str(x.body["tools"]):
            done = ROUNDS
        reply = make_reply(has_tools, len(self.requests), done)
        calls = [wires.Call(each.name, each.arguments, each.id) for each in reply.calls]
        model, whole = str(x.body.get("model")), wires.Reply(reply.text, calls)
        x.send_json(wires.write_whole(wire, model, whole))


def find_faults(player: Player) -> list[str]:
    """Return the requests that were assigned to a wrong conversation."""
    first, *later = player.answers
    faults = [
        f"{player.shape.name}, request {number}: {answer}"
        for number, answer in enumerate(later, 2)
        if answer.conversation != first.conversation
    ]
    own = {each.conversation for each in player.answers}
    mixed = [each for each in player.beside if each.conversation in own]
    return faults + [f"{player.shape.name}, beside it: {each}" for each in mixed]
