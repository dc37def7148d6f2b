"""Deep Agents' summarization, with nothing changed but its import.

What is public in Deep Agents' own tests of it (libs/deepagents, MIT licence) is held
here in tests of the project's own, some of them with its cases.
"""

import base64
import hashlib
import re
from dataclasses import dataclass

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware.types import ExtendedModelResponse, ModelRequest
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from memory.agents import threads
from memory.agents.deepagents import (
    SummarizationMiddleware,
    SummarizationToolMiddleware,
    compute_summarization_defaults,
    create_summarization_middleware,
    create_summarization_tool_middleware,
)
from memory.agents.deepagents.middleware import halve_trigger
from memory.engine.policy import Policy

from .agents import Gate, example, model, summariser
from .test_long_turns import QUESTION, make_tool, reading, remember, texts_of
from .upstream import Upstream

FIVE_KEEP_TWO = {"trigger": ("messages", 5), "keep": ("messages", 2)}
EVENT, SESSION = "_summarization_event", "_summarization_session_id"
LONG = "x" * 200


@dataclass
class Answer:
    """The return value of Deep Agents' backends, as far as it is used."""

    error: str | None = None
    content: bytes | None = None


class Files:
    """A backend that keeps files in a dict, and fails on request."""

    def __init__(self):
        self.files = {}
        self.media = []
        self.broken = ""

    def download_files(self, paths):
        if self.broken == "raises":
            raise OSError("down")
        found = self.files.get(paths[0])
        if found is None:
            return [Answer("file_not_found")]
        return [Answer(content=found.encode())]

    def upload_files(self, files):
        ((path, data),) = files
        if self.broken == "media":
            return [Answer("no")]
        self.media.append((path, data))
        return [Answer()]

    def write(self, file_path, content):
        if self.broken == "raises":
            raise OSError("down")
        if self.broken == "fails" or file_path in self.files:
            return Answer("no")
        self.files[file_path] = content
        return Answer()

    def edit(self, file_path, old_string, new_string):
        if self.broken == "fails" or old_string not in self.files[file_path]:
            return Answer("no")
        self.files[file_path] = self.files[file_path].replace(old_string, new_string)
        return Answer()

    @property
    def only(self):
        (text,) = self.files.values()
        return text


def middleware(files=None, **options):
    options = FIVE_KEEP_TWO | {"summarizer": summariser()} | options
    chat_model = options.pop("model", None) or model()
    return SummarizationMiddleware(chat_model, backend=files or Files(), **options)


def talk(count):
    """User and model in turn: S0, S1 and so on."""
    return [
        AIMessage(f"S{n}") if n % 2 else HumanMessage(f"S{n}") for n in range(count)
    ]


def call(made, messages, handler=None, *, router_model=None, **state):
    """The messages that were sent, and what changed in the state."""
    state = {"messages": messages} | state
    sent = []

    def answer(request):
        sent[:] = request.messages
        return handler(request) if handler else AIMessage("answer")

    asked = router_model or made.model
    request = ModelRequest(model=asked, messages=messages, state=state)
    result = made.wrap_model_call(request, answer)
    is_extended = isinstance(result, ExtendedModelResponse)
    return sent, result.command.update if is_extended else {}


def texts(messages):
    return [message.text for message in messages]


class Chat:
    """An agent with the middleware, a checkpointer and one thread."""

    def __init__(self, files, saver=None, **options):
        self.model = options.pop("model", None) or model()
        self.middleware = middleware(files, model=self.model, **options)
        tool_middleware = SummarizationToolMiddleware(
            self.middleware, system_prompt="Compact before a new task."
        )
        self.agent = create_agent(
            self.model,
            system_prompt="Be brief.",
            middleware=[self.middleware, tool_middleware],
            checkpointer=saver or InMemorySaver(),
        )
        self.config = {"configurable": {"thread_id": "1"}}

    def say(self, *said):
        for text in said:
            state = self.agent.invoke({"messages": [HumanMessage(text)]}, self.config)
        return state["messages"]

    @property
    def state(self):
        return self.agent.get_state(self.config).values


# The file and the event.


def test_the_summary_names_the_file_that_has_the_messages():
    files = Files()
    (summary, *window), update = call(middleware(files), talk(7))
    (path,) = files.files
    assert re.fullmatch(r"/conversation_history/session_[0-9a-f]{32}\.md", path)
    assert f"full conversation history has been saved to {path}" in summary.text
    assert "Summary 1.</summary>" in summary.text
    assert summary.additional_kwargs == {"lc_source": "summarization"}
    assert texts(window) == ["S4", "S5", "S6"]
    assert files.only.startswith("## Summarized at 20")
    assert re.findall(r"S\d+", files.only) == ["S0", "S1", "S2", "S3"]
    event = update[EVENT]
    assert (event["cutoff_index"], event["created_at_index"]) == (4, 7)
    assert (event["file_path"], event["summary_message"]) == (path, summary)
    assert update[SESSION] in path


def test_each_message_is_in_the_file_once():
    # From Deep Agents' test_chained_summarization_cutoff_index.
    made, state = middleware(files := Files()), {}
    for count, cutoff in ((8, 6), (14, 12), (20, 18)):
        (_, *window), update = call(made, talk(count), **state)
        state |= update
        assert texts(window) == [f"S{n}" for n in range(cutoff, count)]
        assert state[EVENT]["cutoff_index"] == cutoff
    assert re.findall(r"S\d+", files.only) == [f"S{n}" for n in range(18)]
    assert files.only.count("## Summarized at") == 3


def test_a_restart_summarises_and_saves_nothing_twice():
    files, saver = Files(), InMemorySaver()
    six = {"trigger": ("messages", 6)}
    Chat(files, saver, **six).say("one", "two", "three", "four")
    after = Chat(files, saver, **six)
    after.say("five")
    assert after.middleware._compactor.writer.model.requests == []
    _, summary, *window = texts(after.model.requests[0])
    assert "Summary 1.</summary>" in summary
    assert "conversation_history" in summary
    assert window == ["three", "reply 3", "four", "reply 4", "five"]
    assert files.only.count("## Summarized at") == 1


def test_the_messages_of_the_state_stay():
    chat = Chat(Files())
    assert len(chat.say("one", "two", "three", "four", "five")) == 10


def test_state_and_result_of_a_caller_hide_the_private_keys():
    chat = Chat(Files())
    result = chat.agent.invoke({"messages": talk(7)}, chat.config)
    assert set(result) == {"messages"}
    assert chat.state[EVENT]["cutoff_index"] == 4


def test_summary_of_deep_agents_is_continued():
    text = (
        "You are in the middle of a conversation that has been summarized.\n\n"
        "A condensed summary follows:\n\n<summary>\nThey met.\n</summary>"
    )
    event = {
        "cutoff_index": 4,
        "summary_message": HumanMessage(text),
        "file_path": "/conversation_history/session_1.md",
    }
    made = middleware(files := Files())
    files.write("/conversation_history/session_1.md", "before")
    state = {EVENT: event, SESSION: "session_1"}
    (summary, *window), update = call(made, talk(7), **state)
    assert ">They met.</summary>" in summary.text
    assert (texts(window), update) == (["S4", "S5", "S6"], {})
    _, update = call(made, talk(11), **state)
    assert re.findall(r"S\d+", files.only) == ["S4", "S5", "S6", "S7"]
    (summary, *_), update = call(made, talk(11), **state | update)
    assert ("Summary 1." in summary.text, update) == (True, {})


@pytest.mark.parametrize(
    "event",
    [
        "nonsense",
        {},
        {"cutoff_index": "3", "summary_message": HumanMessage("They met.")},
        {"cutoff_index": 3},
        {"cutoff_index": -1, "summary_message": HumanMessage("They met.")},
        {"cutoff_index": 9, "summary_message": HumanMessage("They met.")},
        {"cutoff_index": 2, "summary_message": HumanMessage("Hi."), "digest": "other"},
    ],
)
def test_outdated_event_shows_all_messages(event):
    sent, update = call(middleware(), talk(3), **{EVENT: event})
    assert (texts(sent), update) == (["S0", "S1", "S2"], {})


def test_an_edited_message_is_summarised_and_saved_again():
    made = middleware(files := Files())
    _, state = call(made, talk(7))
    messages = talk(7)
    messages[1] = AIMessage("changed")
    (summary, *_), update = call(made, messages, **state)
    assert "Summary 2.</summary>" in summary.text
    assert update[EVENT]["cutoff_index"] == 4
    assert "changed" in files.only


def test_call_reads_covered_messages_once(monkeypatch):
    made = middleware()
    _, state = call(made, talk(7))
    digest, calls = threads.digest_prefixes, []

    def count(messages, ends):
        calls.append(ends)
        return digest(messages, ends)

    monkeypatch.setattr(threads, "digest_prefixes", count)
    call(made, talk(7), **state)
    assert calls == [[4]]


def test_agents_that_share_a_backend_have_files_of_their_own():
    files = Files()
    for _ in range(2):
        call(middleware(files), talk(7))
    assert len(files.files) == 2


@pytest.mark.parametrize(
    ("options", "folder"),
    [
        ({}, "/conversation_history/"),
        ({"history_path_prefix": "/notes/"}, "/notes/"),
    ],
)
def test_history_is_written_to_the_given_folder(options, folder):
    files = Files()
    call(middleware(files, **options), talk(7))
    assert next(iter(files.files)).startswith(folder + "session_")


def test_history_is_below_the_root_of_a_composite_backend():
    files = Files()
    files.artifacts_root = "/shared/"
    call(middleware(files), talk(7))
    assert next(iter(files.files)).startswith("/shared/conversation_history/session_")


def test_summaries_of_langchain_are_not_saved_as_messages():
    files = Files()
    mark = {"lc_source": "summarization"}
    old = HumanMessage("First summary.", additional_kwargs=mark, id="1")
    call(middleware(files), [old, *talk(7)])
    assert "First summary" not in files.only
    assert "S0" in files.only


# Pictures and files.

PICTURE = b"\x89PNG"
BASE64 = base64.b64encode(PICTURE).decode()
DRAWING = "data:image/svg+xml,%3Csvg%3E%3C/svg%3E"
PLACE = "/conversation_history/media/" + hashlib.sha256(PICTURE).hexdigest()[:16]


def embed(*blocks):
    """A thread whose first messages have each of the blocks."""
    shown = [[{"type": "text", "text": "Look:"}, block] for block in blocks]
    return [*map(HumanMessage, shown), *talk(7)]


def test_embedded_data_becomes_a_file():
    files = Files()
    address = f"data:image/png;base64,{BASE64}"
    shapes = [
        {"type": "image", "base64": BASE64, "mime_type": "image/png"},
        {"type": "image", "url": address},
        {"type": "image_url", "image_url": {"url": address}},
    ]
    call(middleware(files), messages := embed(*shapes))
    assert files.media == [(f"{PLACE}.png", PICTURE)]
    assert files.only.count(f'<image url="{PLACE}.png" />') == 3
    assert BASE64 not in files.only
    assert messages[1].content[1] == shapes[1]


@pytest.mark.parametrize(
    ("block", "data", "shown"),
    [
        (
            {"type": "audio", "base64": BASE64, "mime_type": "audio/mpeg"},
            PICTURE,
            f'<audio url="{PLACE}.mp3" />',
        ),
        (
            {"type": "file", "base64": BASE64, "mime_type": "application/pdf"},
            PICTURE,
            f'&lt;file url="{PLACE}.pdf" /&gt;',
        ),
        ({"type": "image", "url": DRAWING}, b"<svg></svg>", '.svg" />'),
    ],
)
def test_media_file_is_named_by_its_type(block, data, shown):
    files = Files()
    call(middleware(files), embed(block))
    assert [each for _, each in files.media] == [data]
    assert shown in files.only


def test_url_stays_as_it_is():
    files = Files()
    block = {"type": "image", "url": "https://example.org/a.png"}
    call(middleware(files), embed(block))
    assert files.media == []
    assert '<image url="https://example.org/a.png" />' in files.only


@pytest.mark.parametrize(
    ("broken", "url"),
    [("media", DRAWING), ("", "data:image/png;base64,a"), ("", "data:image/png")],
)
def test_unsaved_media_is_marked(broken, url):
    files = Files()
    files.broken = broken
    with pytest.warns(UserWarning, match="1 media .* could not be offloaded"):
        _, update = call(middleware(files), embed({"type": "image", "url": url}))
    assert 'error="failed_to_offload"' in files.only
    assert update[EVENT]["file_path"] in files.files


# Failures.


def test_words_that_name_the_file_are_counted():
    made = middleware()
    _, state = call(made, talk(7))
    state |= {"messages": talk(7)}
    request = ModelRequest(model=made.model, messages=talk(7), state=state)
    view = made._open(request).view
    assert "saved to" in view.context.messages[0].text
    assert view.tokens == made.count_tokens(view.context.messages)


def test_requests_stay_small_in_every_round_of_a_long_turn():
    upstream = Upstream(reading(20), told=2000)
    files = Files()
    share = {"trigger": ("fraction", 0.5), "keep": ("fraction", 0.1)}
    made = middleware(files, model=upstream.model(), summarizer=remember, **share)
    agent = create_agent(made.model, tools=[make_tool(3000)], middleware=[made])
    said = {"messages": [HumanMessage(QUESTION)]}
    agent.invoke(said, {"recursion_limit": 100})
    assert max(upstream.sizes) <= 1900
    assert upstream.faults == []
    assert all(
        any(QUESTION in text for text in texts_of(body)) for body in upstream.bodies
    )
    last = " ".join(texts_of(upstream.bodies[-1]))
    assert all(f"file {n} has code-{n * 7}" in last for n in range(20))
    assert "file 0 has code-0" in files.only


@pytest.mark.parametrize("broken", ["fails", "raises"])
def test_unwritten_file_is_not_named_and_written_later(broken):
    made = middleware(files := Files())
    files.broken = broken
    with pytest.warns(UserWarning, match="history to backend failed"):
        (summary, *_), state = call(made, talk(7))
    assert "Summary 1.</summary>" in summary.text
    assert "saved to" not in summary.text
    assert state[EVENT]["file_path"] is None
    files.broken = ""
    (summary, *_), _ = call(made, talk(11), **state)
    assert f"saved to /conversation_history/{state[SESSION]}.md" in summary.text
    assert re.findall(r"S\d+", files.only) == [f"S{n}" for n in range(8)]


def test_a_summariser_that_fails_costs_no_answer_and_leaves_no_file():
    files = Files()
    failing = summariser(*[OSError("the key is 123")] * 9)
    chat = Chat(files, summarizer=failing)
    assert len(chat.say("one", "two", "three", "four")) == 8
    assert files.files == {}
    assert EVENT not in chat.state
    # It rests, because the next call knows of the failure.
    assert len(failing.requests) == 3


def test_a_summary_that_comes_too_late_is_found_by_the_next_call():
    files, gate = Files(), Gate()
    six = {"trigger": ("messages", 6), "compaction_timeout": 0.01}
    chat = Chat(files, summarizer=gate, **six)
    chat.say("one", "two", "three", "four")
    assert gate.entered.wait(10)
    assert files.files == {}
    gate.open.set()
    chat.middleware.wait(10)
    chat.say("five")
    assert "They talked.</summary>" in chat.model.requests[-1][1].text
    assert chat.state[EVENT]["file_path"] in files.files
    assert gate.calls == 1


def test_the_tool_says_when_the_summary_takes_long():
    gate = Gate()
    chat = Chat(
        Files(), trigger=("messages", 10), summarizer=gate, compaction_timeout=0.01
    )
    told = compact(chat, "one", "two", "three")
    assert gate.entered.wait(10)
    gate.open.set()
    chat.middleware.wait(10)
    assert "takes longer than usual" in told


def test_overflow_is_summarised_and_retried_once():
    replies = [ContextOverflowError("too long")]

    def answer(request):
        if replies:
            raise replies.pop()
        return AIMessage("answer")

    made = middleware(files := Files(), trigger=("messages", 100))
    messages = [*talk(6), HumanMessage("word " * 500), *talk(1)]
    sent, update = call(made, messages, handler=answer)
    assert "Summary 1.</summary>" in sent[0].text
    assert update[EVENT]["file_path"] in files.files


async def test_awaited_agent_summarises():
    files = Files()
    chat = Chat(files)
    for text in ("one", "two", "three"):
        said = {"messages": [HumanMessage(text)]}
        await chat.agent.ainvoke(said, chat.config)
    assert "Summary 1.</summary>" in chat.model.requests[-1][1].text
    assert chat.state[EVENT]["file_path"] in files.files


# Old arguments.


def writes(id_, name="write_file", **args):
    args = {"path": "/a", "content": LONG} | args
    return [
        AIMessage("", tool_calls=[{"name": name, "args": args, "id": id_}]),
        ToolMessage("done", tool_call_id=id_),
    ]


def arguments(sent):
    calls = [each for message in sent for each in getattr(message, "tool_calls", ())]
    return [each["args"]["content"] for each in calls]


CUT = "x" * 20 + "...(argument truncated)"
THREAD = [HumanMessage("1"), *writes("a"), HumanMessage("2"), *writes("b")]


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({"trigger": ("messages", 6), "keep": ("messages", 3)}, [CUT, LONG]),
        ({"trigger": ("messages", 6), "keep": ("messages", 1)}, [CUT, CUT]),
        ({"trigger": ("messages", 6), "keep": ("tokens", 350)}, [CUT, LONG]),
        ({"trigger": ("tokens", 600), "keep": ("tokens", 350)}, [CUT, LONG]),
        ({"trigger": ("fraction", 0.06), "keep": ("fraction", 0.035)}, [CUT, LONG]),
        ({"trigger": ("messages", 7), "keep": ("messages", 1)}, [LONG, LONG]),
        ({"trigger": ("tokens", 700), "keep": ("messages", 1)}, [LONG, LONG]),
        ({"trigger": ("messages", 6)}, [LONG, LONG]),
        ({"keep": ("messages", 1)}, [LONG, LONG]),
        ({"trigger": None, "keep": ("messages", 1)}, [LONG, LONG]),
        (
            {
                "trigger": ("messages", 6),
                "keep": ("messages", 3),
                "truncation_text": " and so on",
            },
            ["x" * 20 + " and so on", LONG],
        ),
    ],
)
def test_long_arguments_of_old_calls_are_cut(settings, found):
    made = middleware(
        model=model(profile={"max_input_tokens": 10_000}),
        trigger=("messages", 100),
        token_counter=lambda messages: 100 * len(messages),
        truncate_args_settings={"max_length": 100} | settings,
    )
    sent, update = call(made, THREAD)
    assert (arguments(sent), update) == (found, {})
    assert arguments(THREAD) == [LONG, LONG]


@pytest.mark.parametrize(
    ("size", "found"), [(10_000, [CUT, LONG]), (99_000, [LONG, LONG])]
)
def test_share_of_arguments_is_one_of_the_window_that_a_router_chose(size, found):
    share = {"trigger": ("fraction", 0.06), "keep": ("fraction", 0.035)}
    made = middleware(
        model=model(profile={"max_input_tokens": 50_000}),
        trigger=("messages", 100),
        token_counter=lambda messages: 100 * len(messages),
        truncate_args_settings={"max_length": 100} | share,
    )
    chosen = model(profile={"max_input_tokens": size})
    sent, _ = call(made, THREAD, router_model=chosen)
    assert arguments(sent) == found


def test_summary_counts_as_a_message_for_the_trigger():
    settings = {"trigger": ("messages", 4), "keep": ("messages", 1), "max_length": 100}
    made = middleware(truncate_args_settings=settings)
    messages = [*talk(4), HumanMessage("S4"), *writes("a")]
    _, state = call(middleware(), messages)
    sent, _ = call(made, messages, **state)
    assert (len(sent), arguments(sent)) == (4, [CUT])


@pytest.mark.parametrize(
    "messages",
    [writes("a", content="short"), writes("a", name="search")],
)
def test_short_arguments_and_other_tools_stay(messages):
    settings = {"trigger": ("messages", 1), "keep": ("messages", 1), "max_length": 100}
    made = middleware(trigger=None, truncate_args_settings=settings)
    messages = [HumanMessage("1"), *messages, HumanMessage("2")]
    assert arguments(call(made, messages)[0]) == arguments(messages)


def test_cut_arguments_can_make_a_summary_needless():
    settings = {"trigger": ("tokens", 1), "keep": ("messages", 1), "max_length": 100}
    messages = [HumanMessage("1"), *writes("a", content="x" * 4000), HumanMessage("2")]
    options = {"trigger": ("tokens", 500), "keep": ("messages", 1)}
    assert call(middleware(**options), messages)[1]
    made = middleware(**options, truncate_args_settings=settings)
    assert not call(made, messages)[1]


# The tool.


def asks():
    called = {"name": "compact_conversation", "args": {}, "id": "c"}
    return AIMessage("", tool_calls=[called])


def compact(chat, *said):
    """Return the answer of the tool, asked for after `said`."""
    chat.say(*said)
    chat.model.replies.append(asks())
    chat.say("Compact, please.")
    messages = chat.state["messages"]
    return next(m.text for m in messages if isinstance(m, ToolMessage))


@pytest.mark.parametrize("trigger", [("messages", 10), {"messages": 10, "tokens": 60}])
def test_the_model_can_summarise_from_half_of_the_trigger_on(trigger):
    files = Files()
    chat = Chat(files, trigger=trigger)
    told = compact(chat, "one", "two", "three")
    assert told.startswith("Conversation compacted. Summarized 6 messages")
    system, summary, *window = texts(chat.model.requests[-1])
    assert system == "Be brief.Compact before a new task."
    assert f"saved to {chat.state[EVENT]['file_path']}" in summary
    assert window == ["Compact, please.", "", told]
    assert chat.state[EVENT]["summary_message"].text == summary


def test_half_of_a_trigger_is_half_of_each_condition():
    policy = Policy(trigger=[("fraction", 0.8), {"messages": 5, "tokens": 4000}])
    assert halve_trigger(policy).trigger == (
        (("fraction", 0.4),),
        (("messages", 2), ("tokens", 2000)),
    )


@pytest.mark.parametrize(
    "options",
    [{"trigger": ("messages", 20)}, {"trigger": None}, {"keep": ("messages", 20)}],
)
def test_the_tool_says_when_there_is_nothing_to_do(options):
    files = Files()
    told = compact(Chat(files, **options), "one", "two")
    assert told.startswith("Nothing to compact yet")
    assert files.files == {}


def test_the_tool_says_when_the_summariser_fails():
    failing = summariser(*[OSError("the key is 123")] * 9)
    chat = Chat(Files(), trigger=("messages", 10), summarizer=failing)
    told = compact(chat, "one", "two", "three")
    assert told.startswith("Compaction failed")
    assert "(OSError)" in told
    assert "123" not in told
    assert EVENT not in chat.state


async def test_the_tool_works_when_awaited():
    chat = Chat(Files(), trigger=("messages", 10))
    chat.say("one", "two", "three")
    chat.model.replies.append(asks())
    said = {"messages": [HumanMessage("Compact, please.")]}
    state = await chat.agent.ainvoke(said, chat.config)
    assert any("Summarized 6 messages" in each for each in texts(state["messages"]))


# The defaults.


def test_the_defaults_are_shares_of_a_known_window():
    known = compute_summarization_defaults(model(profile={"max_input_tokens": 9000}))
    assert (known["trigger"], known["keep"]) == (("fraction", 0.85), ("fraction", 0.1))
    unknown = compute_summarization_defaults(model())
    assert (unknown["trigger"], unknown["keep"]) == (
        ("tokens", 170_000),
        ("messages", 6),
    )
    assert unknown["truncate_args_settings"]["trigger"] == ("messages", 20)


def test_the_factories_make_what_they_say():
    made = create_summarization_middleware(model(), Files(), summary_prompt="Sum up.")
    assert made.trim_tokens_to_summarize is None
    assert made.summary_prompt == "Sum up."
    (found,) = create_summarization_tool_middleware(model(), Files()).tools
    assert found.name == "compact_conversation"
    with pytest.raises(TypeError, match="BaseChatModel"):
        create_summarization_middleware("openai:gpt-5.4", Files())


def test_documented_example_runs():
    names = example("deepagents")
    assert len(names["state"]["messages"]) == 6
    (path,) = names["files"]
    assert "I'm Lance" in names["files"][path].decode()
