"""Whatever an agent's history is: each request is valid, within the window, holds the
newest user message as it is, and no message is covered that was not read.

AGENT_EXAMPLES takes more histories than the run of all tests.
"""

import json
import os

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from langchain.agents.middleware.types import ModelRequest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from memory.agents import threads
from memory.agents.middleware import WindowpaneMiddleware
from memory.engine.compose import to_wire
from memory.engine.policy import Policy
from memory.engine.summaries.material import describe_text
from tests.fakes.openai_rules import find_faults

from .agents import Model, model
from .upstream import count_body

EXAMPLES = int(os.environ.get("AGENT_EXAMPLES", "60"))
PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADU"
PICTURES = [
    {"type": "image_url", "image_url": {"url": PIXEL}},
    {"type": "image", "base64": PIXEL[22:], "mime_type": "image/png"},
    {"type": "image", "url": "https://example.org/a.png"},
]
WINDOWS = (1_200, 2_000, 6_000)
REFUSAL = "I'm sorry, I can't help with that."
# By name, so that a failure can be read.
TEXTS = {
    "nothing": "",
    "letter": "a",
    "words": "word " * 100,
    "many words": "long " * 900,
    "Chinese": "思" * 300,
    "letters": "x" * 9_000,
    "question": "Hi",
    "long question": "longer " * 300,
}


def as_content(name, form):
    """The text as a message may hold it."""
    text = TEXTS[name]
    forms = {
        "blocks": [{"type": "text", "text": text}],
        "pictures": [*PICTURES, {"type": "text", "text": text}, "more"],
        "nothing": [],
    }
    return forms.get(form, text)


def ask(text, form):
    return [HumanMessage(as_content(text, form))]


def say(text, form):
    return [AIMessage(as_content(text, form))]


def find_out(text, id_):
    return [ToolMessage(TEXTS[text], tool_call_id=id_)]


def break_call(text):
    broken = {"name": "read", "args": TEXTS[text], "id": "bad", "error": "no JSON"}
    return [AIMessage("", invalid_tool_calls=[broken])]


def set_rule():
    return [SystemMessage("Rule.")]


def work(ids, args, text, form, order):
    """A round of tools whose results come in this order."""
    args_of_call = {"q": TEXTS[args], "n": [1]}
    calls = [{"name": "read", "args": args_of_call, "id": id_} for id_ in ids]
    results = [ToolMessage(as_content(text, form), tool_call_id=id_) for id_ in ids]
    call = AIMessage(as_content(args, form), tool_calls=calls)
    return {
        "behind": [call, *results],
        "backwards": [call, *reversed(results)],
        "before": [*results, call],
        "twice": [call, *results, *results],
        "missing": [call, *results[1:]],
        "interrupted": [call, HumanMessage("Wait."), *results],
        "elsewhere": [*results, AIMessage("So."), call],
    }[order]


def work_much(*options):
    return work([f"c{n}" for n in range(40)], *options)


def steps(function, *options):
    return st.tuples(st.just(function), *options)


TEXT = st.sampled_from([*TEXTS][:6])
QUESTION = st.sampled_from(["question", "words", "Chinese", "long question"])
ID = st.sampled_from(["a", "b", "c", "d", "e", ""])
FORM = st.sampled_from(["text", "text", "blocks", "pictures", "nothing"])
ORDER = st.sampled_from(
    ["behind"] * 6
    + ["backwards", "before", "twice", "missing", "interrupted", "elsewhere"]
)
STEPS = st.one_of(
    steps(work, st.lists(ID, min_size=1, max_size=4), TEXT, TEXT, FORM, ORDER),
    steps(work_much, TEXT, TEXT, FORM, ORDER),
    steps(ask, QUESTION, st.sampled_from(["text", "blocks", "pictures"])),
    steps(say, TEXT, FORM),
    steps(find_out, TEXT, ID),
    steps(break_call, TEXT),
    steps(set_rule),
)
NUMBERS = st.sampled_from([None, "1", "7", "x", "0192-uuid"])
REPLIES = st.sampled_from(
    ["short", "short", "all", "long", "nothing", "refusal", "error", "call"]
)


class Memory:
    """The knowledge of a summariser: the texts that went into a summary, by number."""

    def __init__(self, replies):
        self.replies = replies
        self.calls = 0
        self.read = {}

    def answer(self, texts, parts):
        """A reply to these texts; what `parts` were read is known if it can be good."""
        kind = self.replies[self.calls % len(self.replies)] if self.replies else "all"
        self.calls += 1
        if kind == "error":
            raise OSError("down")
        if kind == "call":
            calls = [{"name": "read", "args": {}, "id": "s"}]
            return AIMessage("Let me look.", tool_calls=calls)
        if kind in ("short", "all", "long"):
            for number, part, text in parts:
                if not part or part.startswith("1/"):
                    self.read[number] = []
                self.read[number].append(text)
        replies = {"short": "They worked.", "long": "long " * 4_000, "nothing": ""}
        return (replies | {"refusal": REFUSAL, "all": " ".join(texts) or "None."})[kind]

    def has_read(self, number, message):
        return "".join(self.read.get(number, [])) == describe_text(message)


class Function(Memory):
    def __call__(self, messages):
        numbered = [each for each in messages if each.id]
        texts = [each.text for each in messages]
        return self.answer(
            texts, [(int(each.id), "", describe_text(each)) for each in numbered]
        )


class Chat(Model):
    """A chat model as the summariser: it reads JSON, in pieces."""

    memory: Memory

    def _number(self):
        request = self.requests[-1][-1].text
        assert PIXEL[22:] not in request
        document = json.loads(request)
        said = document.get("messages", [])
        texts = [document.get("previous_summary", "")]
        texts += [each["text"] for each in [*said, *document.get("summaries", [])]]
        parts = [(each["n"], each.get("part", ""), each["text"]) for each in said]
        return self.memory.answer(texts, parts)


@pytest.fixture(scope="module", autouse=True)
def no_pauses():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("memory.agents.summarizers.PAUSE", 0.0)
        yield


class Player:
    """Plays a history as an agent would, and looks at every request."""

    def __init__(self, window, memory, summarizer, **options):
        self.window = window
        self.memory = memory
        self.model = model(profile={"max_input_tokens": window})
        self.thread = []
        self.middleware = WindowpaneMiddleware(
            self.model, summarizer=summarizer, backoff=0.0, **options
        )

    def play(self, steps):
        for messages in steps:
            if isinstance(messages[0], HumanMessage):
                self.middleware.after_agent({"messages": self.thread}, None)
            self.thread += messages
            if isinstance(messages[-1], HumanMessage | ToolMessage):
                self.request()
        self.middleware.after_agent({"messages": self.thread}, None)
        self.middleware.wait()
        self.check_covered()

    def request(self):
        self.middleware.wait()
        request = ModelRequest(model=self.model, messages=list(self.thread))
        self.middleware.wrap_model_call(request, self.check)
        self.check_covered()

    def check(self, request):
        wire = to_wire(request.messages)
        assert find_faults(wire) == []
        assert count_body({"messages": wire}) <= self.window * 0.95
        asked = [each for each in self.thread if isinstance(each, HumanMessage)]
        assert not asked or asked[-1] in request.messages

    def check_covered(self):
        _, body = threads.split_system(self.thread)
        memory = self.middleware.store.load(threads.find_thread(body))
        for segment in threads.find_active(memory, body):
            block = segment.block
            for number in range(block.first_seq, block.last_seq + 1):
                is_known = self.memory.has_read(number, body[number - 1])
                assert block.is_trimmed or is_known


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    # To make a failure smaller takes minutes; what failed is printed as it is.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
@given(
    steps=st.lists(st.tuples(STEPS, NUMBERS), max_size=14),
    replies=st.lists(REPLIES, max_size=5),
    window=st.sampled_from(WINDOWS),
    when=st.sampled_from(["after", "before"]),
    policy=st.sampled_from(
        [
            Policy(),
            Policy(preset="langchain"),
            Policy(recall_tokens=200, truncate_tool_args=500, important=("longer",)),
            Policy(strategy="window"),
            Policy(enabled=False),
        ]
    ),
    is_model=st.booleans(),
    edited=st.integers(0, 20),
)
def test_requests_of_any_history_are_valid_and_complete(
    steps, replies, window, when, policy, is_model, edited
):
    memory = Function(replies)
    summarizer = Chat(memory=memory, requests=[]) if is_model else memory
    player = Player(window, memory, summarizer, when=when, policy=policy)
    history = [
        [each.model_copy(update={"id": id_}) for each in make(*options)]
        for (make, *options), id_ in steps
    ]
    with player.middleware:
        player.play(history)
        # One of the messages is edited, and the thread goes on.
        if edited < len(player.thread):
            old = player.thread[edited]
            player.thread[edited] = old.model_copy(update={"content": "edited"})
        player.play([[HumanMessage("And now?")]])
