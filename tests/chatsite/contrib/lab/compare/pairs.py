"""Pairs of requests with causes planted between them, of which all is known."""

import random
from dataclasses import dataclass, field
from datetime import timedelta

from chatsite.contrib.lab.compare.presenter import present_figures
from chatsite.contrib.lab.compare.sent_requests import read_compared
from memory import actions, context, transcript
from memory.engine.attachments import Attachment
from memory.engine.compose import USUAL_SHAPE, Shape
from memory.models import ModelCall
from tests.chatsite.features.rules.scenes import state_rule
from tests.memory.scenes import ask, plant, record, reply_to, summarise

CAUSES = (
    *("instructions", "tools", "summary", "recall", "excluded", "pinned", "rule"),
    *("model", "dialect", "file", "idle", "edited"),
)
# The number of the message with a file.
FILE = 5
ABOUT = {
    "recall": (
        "The heron nests at Silverbrook.",
        "The zeppelin museum opens in Friedrichshafen.",
    ),
    "file": "The quasar catalogue lists emissions.",
}
ASKED = {"recall": ("heron nests Silverbrook?", "zeppelin museum Friedrichshafen?")}


@dataclass
class Talk:
    """A conversation that goes on, request by request."""

    conversation: object
    random: random.Random
    model: str = "m"
    shape: Shape = USUAL_SHAPE
    tools: list = field(default_factory=list)
    version: object = None
    notes: set = field(default_factory=set)
    asked_for_file: bool = False
    turns: int = 0
    hideable: list = field(default_factory=list)
    call: ModelCall | None = None

    def begin(self):
        for text in ABOUT["recall"]:
            reply_to(ask(self.conversation, text), "Noted.")
        self._attach()
        self.version = summarise(self.conversation, 1, 6)
        for _ in range(3):
            self.say()
        return self

    def _attach(self):
        file = Attachment("f1", "stars.txt", "text/plain", 40, ABOUT["file"])
        self.conversation.refresh_from_db()
        row, _ = transcript.append_user_message(
            self.conversation,
            text="See the file.",
            client_id="file",
            files=transcript.MessageFiles(["f1"], lambda ids: [file], 200),
        )
        reply_to(row, "Read.")

    def say(self, causes=()):
        """One turn with these causes planted before its request; the codes that a
        comparison with the request before has to find."""
        expected = {"newest", *causes} - {"recall", "file"}
        for cause in causes:
            getattr(self, f"plant_{cause}", lambda: None)()
        self.turns += 1
        text = f"zq{self.turns}a zq{self.turns}b"
        if "recall" in causes:
            text = ASKED["recall"][self.turns % 2]
        elif "file" in causes:
            text = "quasar catalogue emissions?"
        message = ask(self.conversation, text)
        built = context.build_request_context(
            self.conversation, newest=message, model=self.model, shape=self.shape
        )
        if self.tools:
            built.refs["tools"] = [*self.tools]
        self.asked_for_file = "file" in causes
        expected |= self._follow_notes(built.refs)
        reply = reply_to(message, f"Reply {self.turns}.")
        before, self.call = (
            self.call,
            record(self.conversation, built, reply, model=self.model, tokens_input=900),
        )
        if "idle" in causes:
            earlier = before.created_at - timedelta(hours=1)
            plant(before, created_at=earlier)
        self.hideable.append((message.seq, reply.seq))
        return expected

    def _follow_notes(self, refs):
        """Add the effects on the notes: a search finds neighbours, too, and those noted
        for the message before are noted no longer.
        """
        told = ("excerpts", "replaced", "until")
        notes = {
            (n, *(str(row) for each in told for row in refs[each] if row[0] == n))
            for n in refs["recalled"]
        }
        before, self.notes = self.notes, notes
        changed = {n for n, *_ in notes ^ before}
        moved = {"moved"} if notes and notes == before else set()
        return moved | {"file" if n == FILE else "recall" for n in changed}

    def plant_instructions(self):
        self.conversation.system_prompt = f"Be as brief as {self.turns}."
        self.conversation.save(update_fields=["system_prompt"])

    def plant_tools(self):
        self.tools.append(f"tool_{self.turns}")

    def plant_summary(self):
        text = f"They talked, said {self.turns}."
        replaces = [self.version]
        self.version = summarise(self.conversation, 1, 6, replaces=replaces, text=text)

    def plant_excluded(self):
        actions.exclude_messages(self.conversation, self.hideable.pop(0))

    def plant_pinned(self):
        row = self.conversation.messages.get(seq=4)
        change = actions.unpin_message if row.pinned_at else actions.pin_message
        change(self.conversation, 4)

    def plant_rule(self):
        state_rule(self.conversation, f"Always mention number {self.turns}.")

    def plant_model(self):
        self.model = "m2" if self.model == "m" else "m"

    def plant_dialect(self):
        joined = Shape("system", joined=True)
        self.shape = joined if self.shape == USUAL_SHAPE else USUAL_SHAPE

    def plant_edited(self):
        seq, _ = self.hideable.pop()
        transcript.supersede_messages(self.conversation, seq, seq + 1)

    def choose(self):
        causes = self.random.sample(CAUSES, self.random.randint(0, 3))
        # The same question twice brings the same notes.
        if "recall" in causes or self.asked_for_file:
            causes = [each for each in causes if each != "file"]
        # These take a turn each that is still in the window.
        takes = sum(each in causes for each in ("excluded", "edited"))
        if len(self.hideable) <= takes:
            causes = [each for each in causes if each not in ("excluded", "edited")]
        return causes


def compare(conversation, seq, other=None):
    conversation.refresh_from_db()
    return present_figures(read_compared(conversation, seq, other))


def find_where_they_differ(a, b):
    """Message by message and letter by letter, as slowly as it is simple."""
    for place in range(max(len(a), len(b))):
        if place >= min(len(a), len(b)):
            return place, 0
        if a[place] != b[place]:
            one, other = a[place]["content"], b[place]["content"]
            same = 0
            while one[: same + 1] == other[: same + 1] and same < len(one):
                same += 1
            return place, same
    return None
